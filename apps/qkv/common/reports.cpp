#include "common/reports.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "base/error.h"
#include "base/file.h"

namespace qkv::app {
namespace {

template <class AnyJson>
void check_numbers(const AnyJson& part, const std::string& where) {
  if (part.is_structured()) {
    for (const auto& [key, value] : part.items()) check_numbers(value, where + "/" + key);
  } else if (part.is_number_float()) {
    const double value = part.template get<double>();
    QKV_CHECK(std::isfinite(value), "the report says ", value, " at ", where,
              Hint("the model's weights or what was computed with them are not finite numbers"));
  }
}

template <class AnyJson>
std::string finite_text(const AnyJson& report, int indent) {
  check_numbers(report, "");
  return report.dump(indent, ' ', false, AnyJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string report_text(const Json& report, int indent) {
  return finite_text(report, indent);
}
std::string report_text(const nlohmann::ordered_json& report, int indent) {
  return finite_text(report, indent);
}

std::string with_interval(const Estimate& e) {
  if (!e.has_interval()) return fmt::format("{:.4f} [too few texts]", e.mean);
  return fmt::format("{:.4f} [{:.4f}, {:.4f}]", e.mean, e.low, e.high);
}

nlohmann::ordered_json to_json(const Estimate& e) {
  nlohmann::ordered_json made{{"mean", e.mean}};
  if (e.has_interval()) made["interval95"] = {e.low, e.high};
  made["n"] = e.n;
  made["texts"] = e.texts;
  return made;
}

void add_report_options(Command command, ReportOptions& options) {
  command.add_flag("--json", options.json, "Print the report as JSON, and nothing else");
  command.add_option("--out FILE", options.out, "Write the report to a file, as JSON");
}

void write_report(const ReportOptions& options, const std::string& report) {
  if (!options.out.empty()) write_out(options.out, report);
  if (options.json) std::cout << report;
}

void write_report(const ReportOptions& options, const nlohmann::ordered_json& report) {
  if (options.wanted()) write_report(options, report_text(report, 1));
}

void print_json(const nlohmann::ordered_json& report) {
  write_report({.json = true}, report);
}

void write_out(const std::string& file, std::string_view text) {
  if (file == "-") {
    std::cout << text;
  } else {
    write_file_atomic(file, std::as_bytes(std::span(text)));
  }
}

}  // namespace qkv::app

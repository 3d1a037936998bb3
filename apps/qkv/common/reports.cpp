#include "common/reports.h"

#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "base/file.h"

namespace qkv::app {

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
  command.add_output_file("--out FILE", options.out, "Write the report to a file, as JSON");
}

void write_report(const ReportOptions& options, const std::string& report) {
  if (options.json) std::cout << report;
  if (!options.out.empty()) write_out(options.out, report);
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
    return;
  }
  std::cout.flush();  // it may be the same file
  try {
    write_file_atomic(file, std::as_bytes(std::span(text)));
  } catch (const Error& e) {
    throw Error(e.kind(), "the report is lost: " + e.message(), e.hint(), e.where());
  }
}

}  // namespace qkv::app

#include "common/reports.h"

#include <fmt/format.h>

#include <iostream>

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
  command.add_option("--out FILE", options.out, "Write the report to a file, as JSON");
}

void write_report(const ReportOptions& options, const std::string& report) {
  if (!options.out.empty()) write_out(options.out, report);
  if (options.json) std::cout << report;
}

void write_report(const ReportOptions& options, const nlohmann::ordered_json& report) {
  write_report(options, json_text(report, 1) + "\n");
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

#include "common/reports.h"

#include <fmt/format.h>

#include <iostream>

#include "base/file.h"
#include "inspect/cut/ablation.h"

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
  write_report(options, report.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
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

std::vector<SeenText> scored_texts(Inspected& inspected, const TextOptions& options) {
  const std::vector<SeenText> texts = seen(inspected.texts(options));
  if (inspected.spec().kind != ModelSpec::Kind::encoder_only) return texts;
  const Tokenizer& tokenizer = inspected.tokenizer();
  HidingOptions hiding{.mask = tokenizer.named().mask.value_or(-1)};
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.has(id) && tokenizer.is_special(id)) hiding.kept.push_back(id);
  }
  return with_hidden_tokens(texts, hiding);
}

}  // namespace qkv::app

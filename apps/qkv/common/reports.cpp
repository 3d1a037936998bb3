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

void write_out(const std::string& file, std::string_view text) {
  if (file == "-") {
    std::cout << text;
  } else {
    write_file_atomic(file, std::as_bytes(std::span(text)));
  }
}

void write_json(const std::string& file, const nlohmann::ordered_json& report) {
  write_out(file, report.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace qkv::app

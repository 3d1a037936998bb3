// A report as JSON, where --json says: a file that appears whole, or standard output for "-".
#pragma once

#include <iostream>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "inspect/estimate.h"

namespace qkv::app {

inline void write_json(const std::string& path, const nlohmann::ordered_json& report) {
  const std::string text = report.dump(1) + "\n";
  if (path == "-") {
    std::cout << text;
  } else {
    write_file_atomic(path, std::as_bytes(std::span(text)));
  }
}

inline nlohmann::ordered_json as_json(const Estimate& e) {
  return {{"mean", e.mean}, {"low", e.low}, {"high", e.high}, {"n", e.n}, {"texts", e.texts}};
}

}  // namespace qkv::app

// What commands that measure say: numbers with their intervals, and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "inspect/estimate.h"
#include "inspected.h"

namespace qkv::app {

// "0.4213 [0.4010, 0.4420]"; without an interval where too few texts say anything of others.
std::string with_interval(const Estimate& e);
nlohmann::ordered_json to_json(const Estimate& e);

// A report to a file; "-" is standard output.
void write_json(const std::string& file, const nlohmann::ordered_json& report);

// Texts that have a loss: of an encoder alone some tokens are hidden.
std::vector<SeenText> scored_texts(Inspected& inspected, const TextOptions& options);

}  // namespace qkv::app

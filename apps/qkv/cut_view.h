// What cutting heads looks like on a terminal and in JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "inspect/importance.h"

namespace qkv::app {

std::string described(const CutEffect& effect);
nlohmann::ordered_json to_json(const CutEffect& effect);

// All curves in one plot, loss added against heads kept, and the same as a table.
std::string draw_curves(const std::vector<PruningCurve>& curves, int columns);
nlohmann::ordered_json to_json(const ModelSpec& spec, const PruningCurve& curve);

}  // namespace qkv::app

// What cutting heads looks like on a terminal and in JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "inspect/cut/importance.h"

namespace qkv::app {

// "60%" or "0.6"; an Error unless it keeps some and cuts some.
double parse_keep(const std::string& given);

std::string described(const CutEffect& effect);
nlohmann::ordered_json to_json(const CutEffect& effect);

struct SavedCut {
  std::string folder;
  int64_t parameters = 0, parameters_before = 0;
  Estimate loss;
  double ablated_loss = 0;             // of the whole model with the same heads silenced
  double speed = 0, speed_before = 0;  // tokens read per second, the best of several rounds
};
std::string described(const SavedCut& saved);
nlohmann::ordered_json to_json(const SavedCut& saved);

// All curves in one plot, loss added against heads kept, and the same as a table.
std::string draw_curves(const std::vector<PruningCurve>& curves, int columns);
nlohmann::ordered_json to_json(const ModelSpec& spec, const PruningCurve& curve);

}  // namespace qkv::app

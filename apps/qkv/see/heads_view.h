// What qkv heads shows: a table of roles, a wall of all heads, gold labels, and the same as JSON.
#pragma once

#include "base/json.h"
#include "inspect/heads/head_labels.h"
#include "inspect/heads/head_roles.h"

namespace qkv::app {

struct HeadsReport {
  std::string model, data;
  const ModelSpec* spec = nullptr;
  RoleScores roles;
  std::optional<LabelScores> labels;
  // Tokens a second of the first texts: alone, with what the kernel counts, with everything.
  double plain = 0, fast = 0, all = 0;
};

void show(const HeadsReport& report);
nlohmann::ordered_json to_json(const HeadsReport& report);

}  // namespace qkv::app

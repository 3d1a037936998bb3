// What qkv heads found, as a report.
#pragma once

#include "base/json.h"
#include "inspect/heads/head_labels.h"
#include "inspect/heads/head_roles.h"

namespace qkv {

struct HeadsReport {
  std::string model, data;
  const ModelSpec* spec = nullptr;
  RoleScores roles;
  std::optional<LabelScores> labels;
  // Tokens a second of the first texts: alone, with what the kernel counts, with everything.
  // 0: not measured.
  double plain = 0, fast = 0, all = 0;
};

nlohmann::ordered_json to_json(const HeadsReport& report);

// The roles of one head, largest coverage first.
nlohmann::ordered_json roles_json(const HeadScore& head);
// The labels it was found to answer, as roles: "obj: dependent to head". `head`: of all_heads().
nlohmann::ordered_json label_roles_json(const LabelScores& labels, size_t head);

}  // namespace qkv

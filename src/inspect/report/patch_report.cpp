#include "inspect/report/patch_report.h"

#include <cmath>

#include "inspect/report/look_report.h"

namespace qkv {
namespace {

Json both_tokens(const PatchedTokens& tokens) {
  return {{"clean", tokens_json(tokens.clean)}, {"corrupt", tokens_json(tokens.corrupt)}};
}

Json patch_json(const PatchFindings& found) {
  Json out{{"row", found.row},
           {"tokens", both_tokens(found.tokens)},
           {"answer", {{"id", found.answer_id}, {"text", found.answer}}},
           {"wrong", {{"id", found.wrong_id}, {"text", found.wrong}}},
           {"difference", {{"clean", found.clean}, {"corrupt", found.corrupt}}},
           {"maps", Json::array()}};
  if (found.source.size() > 0) out["source"] = both_tokens(found.source);
  for (const PatchMap& map : found.maps) {
    Json rows = Json::array();
    for (size_t row = 0; row < map.rows.size(); ++row) {
      Json values = Json::array();
      for (int64_t c = 0; c < map.columns; ++c) {
        values.push_back(std::isnan(map.at(row, c)) ? Json(nullptr) : Json(map.at(row, c)));
      }
      rows.push_back(std::move(values));
    }
    out["maps"].push_back({{"site", name_of(map.site)},
                           {"stack", name_of_stack(map.stack)},
                           {"across", name_of(map.across)},
                           {"rows", map.rows},
                           {"restored", rows}});
  }
  return out;
}

}  // namespace

const char* name_of(PatchMap::Across across) {
  switch (across) {
    case PatchMap::Across::tokens:
      return "tokens";
    case PatchMap::Across::source:
      return "source";
    case PatchMap::Across::heads:
      return "heads";
  }
  return "?";
}

const char* name_of_stack(Stack stack) {
  return stack == Stack::encoder ? "encoder" : stack == Stack::cross ? "cross" : "decoder";
}

Json patch_report(const PatchFindings& found) {
  Json report{{"report", "patch"}, {"model", found.model}, {"patch", patch_json(found)}};
  if (!found.made_with.empty()) report["made_with"] = found.made_with;
  return report;
}

}  // namespace qkv

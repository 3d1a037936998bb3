// What patching found, as the report's JSON: qkv patch and the library write this one.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "inspect/patch/patch.h"
#include "inspect/texts/shown_tokens.h"

namespace qkv {

struct PatchedTokens {
  std::vector<ShownToken> clean, corrupt;
  size_t size() const { return clean.size(); }
  bool differ(size_t i) const { return clean[i].id != corrupt[i].id; }
};

struct PatchFindings {
  std::string model;             // its name
  std::string made_with = {};    // the command that makes the same report; empty: there is none
  PatchedTokens tokens, source;  // source: empty unless the model translates
  int64_t row = 0;               // where the answer is read
  std::string answer, wrong;
  int32_t answer_id = 0, wrong_id = 0;
  double clean = 0, corrupt = 0;  // m of both texts
  std::vector<PatchMap> maps;
};

const char* name_of(PatchMap::Across across);  // "tokens", "source", "heads"
const char* name_of_stack(Stack stack);        // "encoder", "cross", "decoder"

Json patch_report(const PatchFindings& found);

}  // namespace qkv

// What qkv patch prints and writes.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "inspect/patch/patch.h"
#include "inspect/texts/shown_tokens.h"

namespace qkv::app {

struct PatchedTokens {
  std::vector<ShownToken> clean, corrupt;
  size_t size() const { return clean.size(); }
  bool differ(size_t i) const { return clean[i].id != corrupt[i].id; }
};

struct PatchFindings {
  PatchedTokens tokens, source;  // source: empty unless the model translates
  int64_t row = 0;               // where the answer is read
  std::string answer, wrong;
  int32_t answer_id = 0, wrong_id = 0;
  double clean = 0, corrupt = 0;  // m of both texts
  std::vector<PatchMap> maps;
};

// "residual stream", "attention's output", ...; with the stack where there are several.
std::string title_of(const PatchMap& map, bool several_stacks);

std::string draw_patches(const PatchFindings& found, int columns);
Json patch_json(const PatchFindings& found);

}  // namespace qkv::app

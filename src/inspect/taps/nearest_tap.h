// What a name that no tap has may have meant.
#pragma once

#include <string>
#include <string_view>

#include "model/spec.h"

namespace qkv {

struct NearestTap {
  std::string name;      // of a tap of this model: "0.attn.probs"; empty where nothing is near
  const char* why = "";  // where it is another thing, and no typing error: what it is
};
NearestTap nearest_tap(const ModelSpec& spec, std::string_view name);

}  // namespace qkv

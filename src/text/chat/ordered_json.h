// JSON whose objects keep the order of their keys: templates show it.
#pragma once

#include <string_view>

#include "base/json.h"

namespace qkv {

using OrderedJson = nlohmann::ordered_json;

// As strict as parse_json.
OrderedJson parse_ordered_json(std::string_view text, std::string_view what, JsonLimits limits = {});

}  // namespace qkv

// JSON with ordered keys: the order is visible in rendered templates.
#pragma once

#include <string_view>

#include "base/json.h"

namespace qkv {

using OrderedJson = nlohmann::ordered_json;

// As strict as parse_json.
OrderedJson parse_ordered_json(std::string_view text, std::string_view what, JsonLimits limits = {});

}  // namespace qkv

// Configs of well-known models by name, as on Hugging Face, to describe them without weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace qkv {

std::vector<std::string_view> preset_names();
Json preset_config(const std::string& name);  // an Error with the nearest name and the list

}  // namespace qkv

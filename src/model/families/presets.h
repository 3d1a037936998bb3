// Well-known models by name, as the config.json that Hugging Face has for them: no weights needed to look at them, and
// one reader for all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace qkv {

std::vector<std::string_view> preset_names();
Json preset_config(const std::string& name);  // an Error with the nearest name and the list

}  // namespace qkv

// What the labs measured when they were last run for the record: src/labs/recorded/NAME.json is what
// qkv lab NAME --out wrote. A lab may have none yet.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace qkv {

// Name and report of each; made by CMake.
const std::vector<std::pair<std::string_view, std::string_view>>& recorded_labs();

}  // namespace qkv

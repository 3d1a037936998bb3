// The recipes that ship (recipes/*.json, built into the program), and those of a user's own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace qkv {

// Name and text of each; made by CMake.
const std::vector<std::pair<std::string_view, std::string_view>>& shipped_recipes();

Json find_recipe(const std::string& name_or_file);
std::vector<std::string> recipe_names();

}  // namespace qkv

// What prepare_run() wrote, looked at again when a run is resumed.
#pragma once

#include <filesystem>

#include "train/recipe.h"

namespace qkv {

inline constexpr const char* kPreparedRecipe = "recipe.json";

// The first file that is missing in a prepared folder, or the folder itself; empty if all is there.
std::filesystem::path missing_of_prepared(const std::filesystem::path& folder);

// An Error unless every file is as it was written, none was added, and the recipe asks for the same data, tokenizer and
// model as the one it was made from. Returns what else changed in the recipe, one "steps: 30, was 20" each.
std::vector<std::string> check_prepared(const std::filesystem::path& folder, const Recipe& recipe);

}  // namespace qkv

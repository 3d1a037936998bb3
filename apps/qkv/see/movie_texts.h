// Tokens of a run's embeddings as people read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace qkv::app {

// Empty for a part of a character.
std::vector<std::string> movie_texts(const std::filesystem::path& run, const std::vector<int32_t>& tokens);

}  // namespace qkv::app

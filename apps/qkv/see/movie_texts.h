// Tokens of a run's embeddings as people read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace qkv::app {

// A part of a character is a sign that says so.
std::vector<std::string> movie_texts(const std::filesystem::path& run, const std::vector<int32_t>& tokens);

}  // namespace qkv::app

// What the reader and the writer of GGUF agree on.
#pragma once

#include <cstdint>
#include <string_view>

namespace qkv::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr uint32_t kVersion = 3, kOldestVersion = 2;
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr uint64_t kDefaultAlignment = 32, kLeastAlignment = 8, kMostAlignment = 4096;

inline constexpr uint64_t kLongestKey = 65535, kLongestName = 64;
inline constexpr uint32_t kMostDims = 4;
inline constexpr uint64_t kMostKeys = 100'000, kMostTensors = 100'000;  // real files have some thousands at most

}  // namespace qkv::gguf

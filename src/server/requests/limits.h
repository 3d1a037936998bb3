// Upper bounds of what a request may ask for. Every field has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qkv::server {

inline constexpr size_t kMostMessages = 4096, kMostParts = 4096, kMostTools = 128, kMostToolCalls = 128;
inline constexpr size_t kMostPrompts = 64, kMostEmbeddingTexts = 2048, kMostTranslations = 64;
inline constexpr size_t kMostStops = 16, kMostStopBytes = 256, kMostBiases = 1024;
inline constexpr int64_t kMostTopLogprobs = 20, kMostNewTokens = int64_t{1} << 30;
inline constexpr size_t kMostTextBytes = size_t{16} << 20, kMostNameBytes = 256;

}  // namespace qkv::server

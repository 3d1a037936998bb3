// Pseudo-random token ids, the same everywhere, for tests where any ids will do.
#pragma once

#include <cstdint>
#include <vector>

namespace qkv::test {

inline std::vector<int32_t> some_ids(int64_t count, uint32_t seed, int64_t below = 50) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    ids.push_back(static_cast<int32_t>(static_cast<int64_t>(seed >> 8) % below));
  }
  return ids;
}

}  // namespace qkv::test

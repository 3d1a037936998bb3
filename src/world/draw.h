// A stream of random numbers addressed by (seed, story, stream).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/philox.h"

namespace qkv::world {

inline constexpr uint32_t kDrawSite = 0x776f726c;  // "worl"

class Draw {
 public:
  Draw(uint64_t seed, uint64_t story, uint32_t stream)
      : key_(fold({.seed = seed, .step = story, .layer = stream, .site = kDrawSite})) {}

  uint32_t next() {
    if ((count_ & 3) == 0) block_ = random_block(key_, 0, count_);
    return block_[count_++ & 3];
  }
  // In [0, n). n is far below 2^32, so the bias is negligible.
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(uint64_t{next()} * n >> 32); }
  int between(int low, int high) { return low + static_cast<int>(below(static_cast<uint32_t>(high - low + 1))); }
  bool chance(uint32_t percent) { return below(100) < percent; }

  template <class Table>
  const auto& pick(const Table& table) {
    return table[below(static_cast<uint32_t>(std::size(table)))];
  }

 private:
  PhiloxKey key_;
  PhiloxCounter block_{};
  uint64_t count_ = 0;
};

}  // namespace qkv::world

// A pseudo-random permutation of [0, size) without a table: a Feistel network with Philox as its round function. It
// permutes the next power of two; a result >= size is permuted again until it is inside (cycle walking).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/philox.h"

namespace qkv {

class Permutation {
 public:
  // One permutation per key; indices must be < size.
  Permutation(uint64_t size, PhiloxKey key)
      : size_(size),
        low_bits_(std::max(2, static_cast<int>(std::bit_width(std::max<uint64_t>(size, 1) - 1))) / 2),
        high_bits_(std::max(2, static_cast<int>(std::bit_width(std::max<uint64_t>(size, 1) - 1))) - low_bits_),
        key_(key) {}

  uint64_t size() const { return size_; }

  uint64_t operator()(uint64_t index) const {
    if (size_ < 2) return index;
    do index = shuffle(index);
    while (index >= size_);
    return index;
  }

 private:
  static constexpr uint32_t kRounds = 8;  // even: the halves swap widths in every round

  uint64_t shuffle(uint64_t index) const {
    uint64_t a = index >> low_bits_, b = index & mask(low_bits_);  // a has high_bits_, b has low_bits_
    int a_bits = high_bits_, b_bits = low_bits_;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const PhiloxCounter words = philox({static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32), round, 0}, key_);
      const uint64_t mixed = a ^ ((uint64_t{words[0]} << 32 | words[1]) & mask(a_bits));
      a = b;
      b = mixed;
      std::swap(a_bits, b_bits);
    }
    return a << low_bits_ | b;
  }

  static uint64_t mask(int bits) { return (uint64_t{1} << bits) - 1; }

  uint64_t size_;
  int low_bits_, high_bits_;
  PhiloxKey key_;
};

}  // namespace qkv

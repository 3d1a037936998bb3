// Hash functions for caches and for training, whose order they decide, fast for short keys. Tables of what a file
// brings take seeded_hash().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/seeded_hash.h"

namespace qkv {

inline uint64_t hash_number(uint64_t value) {
  return fold_product(value ^ 0x9E3779B97F4A7C15U, 0xD6E8FEB86659FD93U);
}

inline uint64_t hash_bytes(std::string_view bytes) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = 0x8BB84B93962EACC9U ^ left;
  uint64_t word = 0;
  for (; left >= 8; left -= 8, at += 8) {
    std::memcpy(&word, at, 8);
    hash = fold_product(hash ^ word, 0x9E3779B97F4A7C15U);
  }
  word = 0;
  if (left >= 4) {  // two overlapping reads instead of a copy of variable length
    uint32_t first = 0, last = 0;
    std::memcpy(&first, at, 4);
    std::memcpy(&last, at + left - 4, 4);
    word = uint64_t{first} << 32 | last;
  } else if (left > 0) {
    const auto byte = [&](size_t i) { return uint64_t{static_cast<unsigned char>(at[i])}; };
    word = byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1);
  }
  return fold_product(hash ^ word, 0xD6E8FEB86659FD93U);
}

}  // namespace qkv

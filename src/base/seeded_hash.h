// Hashes whose values differ from process to process, for tables of names and numbers that a file or a request brings:
// nobody can choose them so that they collide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace qkv {

// XOR of both halves of the 128-bit product.
inline uint64_t fold_product(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

struct HashSecret {
  uint64_t start, multiplier;  // the multiplier is odd
};
const HashSecret& hash_secret();  // random, the same throughout the process

inline uint64_t seeded_hash(uint64_t value) {
  const HashSecret& secret = hash_secret();
  return fold_product(value ^ secret.start, secret.multiplier);
}

inline uint64_t seeded_hash(std::string_view bytes) {
  const HashSecret& secret = hash_secret();
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = secret.start ^ left, word = 0;
  for (; left >= 8; left -= 8, at += 8) {
    std::memcpy(&word, at, 8);
    hash = fold_product(hash ^ word, secret.multiplier);
  }
  word = 0;
  if (left > 0) std::memcpy(&word, at, left);
  return fold_product(hash ^ word, secret.multiplier);
}

// For std::unordered_map and the like.
struct SeededHash {
  size_t operator()(uint64_t value) const { return seeded_hash(value); }
  size_t operator()(std::string_view text) const { return seeded_hash(text); }
  size_t operator()(std::u32string_view text) const {
    return seeded_hash({reinterpret_cast<const char*>(text.data()), text.size() * sizeof(char32_t)});
  }
};

}  // namespace qkv

// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3;
// SC 2011) maps a counter and a key to four words. The key is made of seed, step, layer and site, the counter of a
// global row and column, so a value does not depend on threads, batches or memory layout.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace qkv {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// One key per random stream.
struct RngKey {
  uint64_t seed = 0, step = 0;
  uint32_t layer = 0, site = 0;
};

constexpr PhiloxKey fold(const RngKey& rng) {
  const PhiloxCounter mixed =
      philox({static_cast<uint32_t>(rng.step), static_cast<uint32_t>(rng.step >> 32), rng.layer, rng.site},
             {static_cast<uint32_t>(rng.seed), static_cast<uint32_t>(rng.seed >> 32)});
  return {mixed[0], mixed[1]};
}

// The four words of columns 4k to 4k+3 of a row.
constexpr PhiloxCounter random_block(PhiloxKey key, uint64_t row, uint64_t column) {
  const uint64_t block = column >> 2;
  return philox({static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), static_cast<uint32_t>(block),
                 static_cast<uint32_t>(block >> 32)},
                key);
}

constexpr uint32_t random_u32(PhiloxKey key, uint64_t row, uint64_t column) {
  return random_block(key, row, column)[column & 3];
}

// In [0, 1), a multiple of 2^-24: every step a float can hold.
constexpr float uniform01(uint32_t random) {
  return static_cast<float>(random >> 8) * 0x1p-24F;
}

// Standard normal by Box-Muller: two words give two values. Columns 2p and 2p+1 share their two words; one takes the
// cosine, one the sine. Uniforms and normals of one key use the same words, so a stream must draw only one kind.
// log, cos and sin are the C library's: another library may differ in the last bit.
inline double normal(PhiloxKey key, uint64_t row, uint64_t column) {
  const PhiloxCounter words = random_block(key, row, column);
  const size_t pair = column & 2;
  const double u = (words[pair] + 1.0) * 0x1p-32;  // in (0, 1]: the logarithm is finite
  const double angle = 2.0 * std::numbers::pi * 0x1p-32 * words[pair + 1];
  return std::sqrt(-2.0 * std::log(u)) * ((column & 1) == 0 ? std::cos(angle) : std::sin(angle));
}

}  // namespace qkv

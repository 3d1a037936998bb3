// Random data to measure on: zeros are faster than real data.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace qkv::bench {

// splitmix64 of (seed, index): cheap, and the same whatever the number of threads.
inline uint64_t random_bits(uint64_t seed, uint64_t i) {
  uint64_t z = (seed << 48) + (i + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

inline float random_float(uint64_t seed, uint64_t i) {  // in [-1, 1)
  return static_cast<float>(static_cast<int64_t>(random_bits(seed, i)) >> 40) * 0x1p-23F;
}

// to[i] = make(i) on all threads.
template <class T, class Make>
void fill(ThreadPool& pool, T* to, int64_t count, const Make& make) {
  constexpr int64_t kChunk = 1 << 16;
  pool.run((count + kChunk - 1) / kChunk, [&](int64_t chunk, int) {
    const int64_t end = std::min(count, (chunk + 1) * kChunk);
    for (int64_t i = chunk * kChunk; i < end; ++i) to[i] = make(static_cast<uint64_t>(i));
  });
}

}  // namespace qkv::bench

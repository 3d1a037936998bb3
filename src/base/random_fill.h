// Arrays of random numbers. Number i of a stream depends only on random_block(key, 0, i), so parts of a stream can be
// drawn in any order and by any thread.
#pragma once

#include <span>

#include "base/philox.h"

namespace qkv {

// out[k] = deviation * normal(key, 0, first + k), in float without library functions: the same bits with any C library.
void fill_normal(PhiloxKey key, uint64_t first, float deviation, std::span<float> out);

// Uniform in [-bound, bound].
void fill_uniform(PhiloxKey key, uint64_t first, float bound, std::span<float> out);

}  // namespace qkv

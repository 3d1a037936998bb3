// Many random numbers at once. Number i of a stream is made of the words of random_block(key, 0, i) and of nothing
// else, so any part of a stream can be drawn by anyone, in any order.
#pragma once

#include <span>

#include "base/philox.h"

namespace qkv {

// out[k] = deviation * normal(key, 0, first + k), in float and of arithmetic alone: the same bits with any C library.
void fill_normal(PhiloxKey key, uint64_t first, float deviation, std::span<float> out);

// Uniform in [-bound, bound].
void fill_uniform(PhiloxKey key, uint64_t first, float bound, std::span<float> out);

}  // namespace qkv

// A bf16 step of Hopper's tensor core in software: what `cuda` products compute, tested without a GPU.
#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"

namespace qkv::test {

inline constexpr int kTensorCoreStep = 16;

// c + sum of 16 products. All are aligned to the largest exponent (a product's is the sum of its operands'), cut off after
// 25 fraction bits towards zero, added exactly, and the sum is cut off to f32. Finite numbers only.
float tensor_core_step(float c, std::span<const Bf16, kTensorCoreStep> a, std::span<const Bf16, kTensorCoreStep> b);

// The order of a product: one chain of steps from 0, the last padded with zeros.
float tensor_core_dot(std::span<const Bf16> a, std::span<const Bf16> b);

}  // namespace qkv::test

// Optimiser steps; formulas in ops/optim.cpp.
#pragma once

#include "kernels/cpu/isa/rows.h"

namespace qkv::kernels::cpu {
namespace {

void adamw_step(const AdamWStep& call) noexcept {
  const AdamWStep c = call;
  const Lanes beta1 = splat(c.beta1), beta2 = splat(c.beta2), rest1 = splat(1 - c.beta1), rest2 = splat(1 - c.beta2);
  const Lanes factor = splat(c.factor), shrink = splat(c.shrink), rate = splat(c.rate);
  const Lanes root2 = splat(c.root2), eps = splat(c.eps);
  along(
      c.count, QKV_STEP(=) {
        const Lanes g = load(c.g, i, n) * factor;
        const Lanes m = beta1 * load(c.m, i, n) + rest1 * g;
        const Lanes v = beta2 * load(c.v, i, n) + rest2 * g * g;
        store(c.m, i, n, m);
        store(c.v, i, n, v);
        store(c.w, i, n, load(c.w, i, n) * shrink - rate * m / (square_root(v) / root2 + eps));
      });
}

void sgd_step(const SgdStep& call) noexcept {
  const SgdStep c = call;
  const Lanes rate = splat(c.rate), momentum = splat(c.momentum), decay = splat(c.decay), factor = splat(c.factor);
  along(
      c.count, QKV_STEP(=) {
        Lanes update = load(c.g, i, n) * factor;
        if (c.buffer != nullptr) {
          update = update + momentum * load(c.buffer, i, n);
          store(c.buffer, i, n, update);
        }
        const Lanes w = load(c.w, i, n);
        store(c.w, i, n, w - rate * (update + decay * w));
      });
}

// The sum of squares in double: element i goes to lane i % 32, the lanes are added as a tree (16, 8, 4, 2, 1). The
// square of a float is exact there, so every instruction set gives the same bits.
double squares(FloatRow x, int64_t count) noexcept {
  typedef double Doubles __attribute__((vector_size(64)));
  typedef float EightFloats __attribute__((vector_size(32)));
  constexpr int64_t kParallel = 32;
  double lanes[kParallel];
  Doubles sums[4] = {};
  const auto add = [&](const float* from) __attribute__((always_inline)) {
    for (int p = 0; p < 4; ++p) {
      EightFloats eight;
      __builtin_memcpy(&eight, from + 8 * p, sizeof(eight));
      const Doubles wide = __builtin_convertvector(eight, Doubles);
      sums[p] += wide * wide;
    }
  };
  float part[kParallel];
  for (int64_t i = 0; i < count; i += kParallel) {
    const int64_t n = count - i < kParallel ? count - i : kParallel;
    if (!x.bf16 && n == kParallel) {
      add(static_cast<const float*>(x.data) + i);
      continue;
    }
    store(part, load(x, i, n < kLanes ? n : kLanes));
    store(part + kLanes, n > kLanes ? load(x, i + kLanes, n - kLanes) : splat(0));
    add(part);
  }
  __builtin_memcpy(lanes, sums, sizeof(lanes));
  for (int64_t half = kParallel / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

}  // namespace
}  // namespace qkv::kernels::cpu

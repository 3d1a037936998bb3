// Optimiser steps; formulas in ops/optim.cpp.
#pragma once

#include "kernels/cpu/forms/rows.h"

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

}  // namespace
}  // namespace qkv::kernels::cpu

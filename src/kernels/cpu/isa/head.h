// The loss on one row of logits, for a block of the vocabulary.
#pragma once

#include "kernels/cpu/isa/activations.h"

namespace qkv::kernels::cpu {
namespace {

// Turns products into logits and adds the block to the row's log-sum-exp.
void head_step(HeadStep& call) noexcept {
  HeadStep c = call;
  const Lanes cap = splat(c.cap), nothing = splat(-__builtin_inff());
  Lanes top = splat(c.highest), sums = splat(0);
  along(
      c.count, QKV_STEP(&) {
        Lanes l = load(c.logits, i, n);
        if (c.bias.data != nullptr) l = l + load(c.bias, i, n);
        if (c.cap > 0) l = cap * tanh(l / cap);
        store(c.logits, i, n, l);
        top = maximum(top, first_lanes(l, n, nothing));
        sums = sums + first_lanes(l, n, splat(0));
      });
  const float highest = largest(top);
  const Lanes shift = splat(highest);
  Lanes total = splat(0);
  along(
      c.count, QKV_STEP(&) { total = total + first_lanes(exp(load(c.logits, i, n) - shift), n, splat(0)); });
  call.total = c.total * (c.highest == highest ? 1 : first(exp(splat(c.highest - highest)))) + sum(total);
  call.highest = highest;
  call.sum = c.sum + sum(sums);
}

// Products become d loss / d product:  scale (p weight - wanted) (1 - (l / cap)^2),  p = exp(l - lse).
void head_gradient(const HeadGradient& call) noexcept {
  const HeadGradient c = call;
  const Lanes cap = splat(c.cap), lse = splat(c.lse), weight = splat(c.weight), scale = splat(c.scale);
  const Lanes everywhere = splat(c.everywhere), there = splat(c.everywhere + c.on_target);
  const auto of = [=](Lanes l, const Lanes& wanted) __attribute__((always_inline)) {
    Lanes slope = splat(1);
    if (c.cap > 0) {
      const Lanes t = tanh(l / cap);
      l = cap * t;
      slope = splat(1) - t * t;
    }
    return scale * (exp(l - lse) * weight - wanted) * slope;
  };
  const auto biased = [=](int64_t i, int64_t n) __attribute__((always_inline)) {
    const Lanes l = load(c.logits, i, n);
    return c.bias.data != nullptr ? l + load(c.bias, i, n) : l;
  };
  const bool here = c.target >= 0 && c.target < c.count;
  const Lanes on_target = here ? of(biased(c.target, 1), there) : splat(0);
  along(
      c.count, QKV_STEP(=) { store(c.logits, i, n, of(biased(i, n), everywhere)); });
  if (here) c.logits[c.target] = first(on_target);
}

}  // namespace
}  // namespace qkv::kernels::cpu

// Operations on one row of f32 or bf16, sixteen elements at a time. A sum along a row has the order of matmul_nt:
// element k goes to lane k % 16, the lanes are added as a tree.
#pragma once

#include "kernels/cpu/isa/exp.h"
#include "kernels/cpu/isa/isa_kernels.h"

namespace qkv::kernels::cpu {
namespace {

// Elements [i, i + n) of a row, n at most sixteen, then zeros.
QKV_INLINE Lanes load(const FloatRow& x, int64_t i, int64_t n) {
  if (x.bf16) {
    const auto* from = static_cast<const uint16_t*>(x.data) + i;
    return n == kLanes ? load(from) : load_some(from, n);
  }
  const auto* from = static_cast<const float*>(x.data) + i;
  return n == kLanes ? load(from) : load_some(from, n);
}
QKV_INLINE Lanes load(const float* x, int64_t i, int64_t n) {
  return n == kLanes ? load(x + i) : load_some(x + i, n);
}

QKV_INLINE void store(const FloatRow& y, int64_t i, int64_t n, const Lanes& v) {
  if (y.bf16) {
    auto* to = static_cast<uint16_t*>(y.data) + i;
    return n == kLanes ? store(to, v) : store_some(to, v, n);
  }
  auto* to = static_cast<float*>(y.data) + i;
  return n == kLanes ? store(to, v) : store_some(to, v, n);
}
QKV_INLINE void store(float* y, int64_t i, int64_t n, const Lanes& v) {
  return n == kLanes ? store(y + i, v) : store_some(y + i, v, n);
}

// A gradient: the first use writes, later ones add.
QKV_INLINE void put(const FloatRow& y, int64_t i, int64_t n, const Lanes& v, bool add) {
  store(y, i, n, add ? load(y, i, n) + v : v);
}

// Calls f(i, n) for every sixteen elements of a row, fewer at the end.
template <class F>
QKV_INLINE void along(int64_t count, F&& f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) f(i, kLanes);
  if (i < count) f(i, count - i);
}

#define QKV_STEP(...) [__VA_ARGS__](int64_t i, int64_t n) __attribute__((always_inline))

void widen(float* y, const uint16_t* x, int64_t count) noexcept {
  along(
      count, QKV_STEP(=) { n == kLanes ? store(y + i, load(x + i)) : store_some(y + i, load_some(x + i, n), n); });
}

void narrow(uint16_t* y, const float* x, int64_t count) noexcept {
  along(
      count, QKV_STEP(=) { n == kLanes ? store(y + i, load(x + i)) : store_some(y + i, load_some(x + i, n), n); });
}

void exp_row(float* y, const float* x, int64_t count) noexcept {
  along(
      count, QKV_STEP(=) { store(y, i, n, exp(load(x, i, n))); });
}

void scaled_row(FloatRow y, FloatRow x, float factor, bool add, int64_t count) noexcept {
  const Lanes times = splat(factor);
  along(
      count, QKV_STEP(=) { put(y, i, n, times * load(x, i, n), add); });
}

void add_rows(FloatRow y, FloatRow a, FloatRow b, int64_t count) noexcept {
  along(
      count, QKV_STEP(=) { store(y, i, n, load(a, i, n) + load(b, i, n)); });
}

// A row of only -inf becomes zeros.
void softmax_row(FloatRow y, FloatRow x, int64_t count) noexcept {
  constexpr float kNothing = -__builtin_inff();
  const Lanes nothing = splat(kNothing);
  Lanes top = nothing;
  along(
      count, QKV_STEP(&) { top = maximum(top, first_lanes(load(x, i, n), n, nothing)); });
  const float highest = largest(top);
  if (highest == kNothing)
    return along(
        count, QKV_STEP(=) { store(y, i, n, splat(0)); });
  const Lanes shift = splat(highest);
  Lanes sums = splat(0);
  along(
      count, QKV_STEP(&) {
        const Lanes e = exp(load(x, i, n) - shift);
        if (!y.bf16) store(y, i, n, e);  // kept in y; bf16 would round it
        sums = sums + first_lanes(e, n, splat(0));
      });
  const Lanes total = splat(sum(sums));
  along(
      count, QKV_STEP(=) { store(y, i, n, (y.bf16 ? exp(load(x, i, n) - shift) : load(y, i, n)) / total); });
}

// dx = y (dy - y . dy)
void softmax_dx_row(FloatRow dx, FloatRow dy, FloatRow y, bool add, int64_t count) noexcept {
  Lanes sums = splat(0);
  along(
      count, QKV_STEP(&) { sums = multiply_add(load(y, i, n), load(dy, i, n), sums); });
  const Lanes dot = splat(sum(sums));
  along(
      count, QKV_STEP(=) { put(dx, i, n, load(y, i, n) * (load(dy, i, n) - dot), add); });
}

// Adjacent elements as pairs: the first of each, and the second of each.
struct Pairs {
  Lanes one, two;
};

QKV_INLINE Pairs load_pairs(const FloatRow& x, int64_t i, int64_t n) {
  float both[2 * kLanes], one[kLanes], two[kLanes];
  store(both, load(x, 2 * i, n < kLanes / 2 ? 2 * n : kLanes));
  store(both + kLanes, n > kLanes / 2 ? load(x, 2 * i + kLanes, 2 * n - kLanes) : splat(0));
  for (int k = 0; k < kLanes; ++k) {
    one[k] = both[2 * k];
    two[k] = both[2 * k + 1];
  }
  return {load(one), load(two)};
}

QKV_INLINE void put_pairs(const FloatRow& y, int64_t i, int64_t n, const Pairs& v, bool add) {
  float both[2 * kLanes], one[kLanes], two[kLanes];
  store(one, v.one);
  store(two, v.two);
  for (int k = 0; k < kLanes; ++k) {
    both[2 * k] = one[k];
    both[2 * k + 1] = two[k];
  }
  put(y, 2 * i, n < kLanes / 2 ? 2 * n : kLanes, load(both), add);
  if (n > kLanes / 2) put(y, 2 * i + kLanes, 2 * n - kLanes, load(both + kLanes), add);
}

// Rotates the pairs (i, i + pairs), or (2i, 2i + 1) if interleaved.
void rotate_row(const RotateCall& call) noexcept {
  const RotateCall c = call;
  const Lanes sign = splat(c.inverse ? -1.0F : 1.0F);
  const auto rotated = [=](const Pairs& x, int64_t i, int64_t n) __attribute__((always_inline)) {
    const Lanes cosine = load(c.cosine, i, n), sine = sign * load(c.sine, i, n);
    return Pairs{x.one * cosine - x.two * sine, x.two * cosine + x.one * sine};
  };
  if (c.interleaved) {
    return along(
        c.pairs, QKV_STEP(=) { put_pairs(c.y, i, n, rotated(load_pairs(c.x, i, n), i, n), c.add); });
  }
  along(
      c.pairs, QKV_STEP(=) {
        const Pairs y = rotated({load(c.x, i, n), load(c.x, i + c.pairs, n)}, i, n);
        put(c.y, i, n, y.one, c.add);
        put(c.y, i + c.pairs, n, y.two, c.add);
      });
}

}  // namespace
}  // namespace qkv::kernels::cpu

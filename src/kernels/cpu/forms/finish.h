// The end of a product: up to sixteen sums of one row become what is kept of them.
//
//   s = sum + bias
//   plain      y = s, or y += s
//   residual   y = residual + s
//   curve      pre = s    y = f(pre)
//   gated      pre = s    y = f(min(gate, limit)) (clamp(pre, limit) + shift)
//   curve_dx   d = s      y = d f'(pre), or +=
//   gated_dx   d = s      y and dgate, the gradients of gated
//
// pre and d are rounded to bf16 where they would be kept in it: curves.h gives the same bits from memory.
#pragma once

#include "kernels/cpu/forms/curves.h"

namespace qkv::kernels::cpu {
namespace {

QKV_INLINE Floats row_of(const Matrix& m, int64_t row) {
  if (m.data == nullptr) return {};
  return {static_cast<char*>(m.data) + row * m.stride * (m.bf16 ? 2 : 4), m.bf16};
}

struct FinishRow {
  Floats y, residual, pre, gate, dgate;
};

QKV_INLINE FinishRow row_of(const FinishCall& f, int64_t row) {
  return {row_of(f.y, row), row_of(f.residual, row), row_of(f.pre, row), row_of(f.gate, row), row_of(f.dgate, row)};
}

QKV_INLINE Lanes with_bias(const FinishCall& f, int64_t column, const Lanes& sum, int64_t count) {
  return f.bias.data == nullptr ? sum : sum + load(f.bias, column, count);
}

// As if kept and read again.
QKV_INLINE Lanes as_kept(const FinishCall& f, const Lanes& s) {
  return f.rounded ? each(s, [](Register x) { return widened(narrowed(x)); }) : s;
}

// From s on, without and with a curve.
QKV_INLINE void finish_plainly(const FinishCall& f, const FinishRow& at, int64_t column, const Lanes& s,
                               int64_t count) {
  if (f.kind == FinishCall::Kind::residual) return store(at.y, column, count, load(at.residual, column, count) + s);
  put(at.y, column, count, s, f.add);
}

template <Curve K>
QKV_INLINE void finish_curved(Kind<K> kind, const FinishCall& f, const FinishRow& at, int64_t column, const Lanes& sum,
                              int64_t count) {
  const Lanes s = as_kept(f, sum);
  const GateNumbers by{splat(f.alpha), splat(f.limit), splat(f.shift)};
  switch (f.kind) {
    case FinishCall::Kind::plain:
    case FinishCall::Kind::residual:
      return;
    case FinishCall::Kind::curve:
      if (at.pre.data != nullptr) store(at.pre, column, count, s);
      return store(at.y, column, count, apply(kind, s, by.alpha).value);
    case FinishCall::Kind::gated:
      if (at.pre.data != nullptr) store(at.pre, column, count, s);
      return store(at.y, column, count, gated(kind, load(at.gate, column, count), s, by));
    case FinishCall::Kind::curve_dx:
      return put(at.y, column, count, s * apply(kind, load(at.pre, column, count), by.alpha).slope, f.add);
    case FinishCall::Kind::gated_dx: {
      const GateGradients d = gated_dx(kind, load(at.gate, column, count), load(at.pre, column, count), s, by);
      if (at.dgate.data != nullptr) put(at.dgate, column, count, d.gate, f.dgate_add);
      if (at.y.data != nullptr) put(at.y, column, count, d.up, f.add);
    }
  }
}

QKV_INLINE bool curved(const FinishCall& f) {
  return f.kind != FinishCall::Kind::plain && f.kind != FinishCall::Kind::residual;
}

// One vector of curves at a time is not worth its code in every loop that calls it.
[[gnu::noinline]] void finish_curved_lanes(const FinishCall& f, int64_t row, int64_t column, const Lanes& s,
                                           int64_t count) {
  with_kind(f.curve, [&](auto kind) { finish_curved(kind, f, row_of(f, row), column, s, count); });
}

// Columns [column, column + count) of a row, sixteen at most.
QKV_INLINE void finish_lanes(const FinishCall& f, int64_t row, int64_t column, const Lanes& sum, int64_t count) {
  const Lanes s = with_bias(f, column, sum, count);
  if (curved(f)) return finish_curved_lanes(f, row, column, s, count);
  finish_plainly(f, row_of(f, row), column, s, count);
}

// The same for as many columns as there are.
void finish_row(const FinishCall& call, int64_t row, int64_t column, const float* sums, int64_t count) noexcept {
  const FinishCall f = call;
  const FinishRow at = row_of(f, row);
  const int64_t whole = count / kLanes * kLanes;
  const auto each_whole = [=](auto&& finish) __attribute__((always_inline)) {
    for (int64_t i = 0; i < whole; i += kLanes) finish(column + i, with_bias(f, column + i, load(sums + i), kLanes));
  };
  if (curved(f)) {
    with_kind(f.curve, [=](auto kind) {
      each_whole([=](int64_t c, const Lanes& s)
                     __attribute__((always_inline)) { finish_curved(kind, f, at, c, s, kLanes); });
    });
  } else {
    each_whole([=](int64_t c, const Lanes& s) __attribute__((always_inline)) { finish_plainly(f, at, c, s, kLanes); });
  }
  if (whole < count) finish_lanes(f, row, column + whole, load_some(sums + whole, count - whole), count - whole);
}

}  // namespace
}  // namespace qkv::kernels::cpu

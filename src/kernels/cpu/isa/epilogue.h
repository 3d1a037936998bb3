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

#include "kernels/cpu/isa/curves.h"

namespace qkv::kernels::cpu {
namespace {

QKV_INLINE Floats row_of(const Matrix& m, int64_t row) {
  if (m.data == nullptr) return {};
  return {static_cast<char*>(m.data) + row * m.stride * (m.bf16 ? 2 : 4), m.bf16};
}

struct EpilogueRow {
  Floats y, residual, pre, gate, dgate;
};

QKV_INLINE EpilogueRow row_of(const EpilogueCall& f, int64_t row) {
  return {row_of(f.y, row), row_of(f.residual, row), row_of(f.pre, row), row_of(f.gate, row), row_of(f.dgate, row)};
}

QKV_INLINE Lanes with_bias(const EpilogueCall& f, int64_t column, const Lanes& sum, int64_t count) {
  return f.bias.data == nullptr ? sum : sum + load(f.bias, column, count);
}

// s as if kept and read again, and kept where `to` is not null.
QKV_INLINE Lanes kept(const EpilogueCall& f, const Floats& to, int64_t column, const Lanes& s, int64_t count) {
  if (!f.rounded) {
    if (to.data != nullptr) store(to, column, count, s);
    return s;
  }
  Lanes v;
  uint16_t* at = to.data == nullptr ? nullptr : static_cast<uint16_t*>(to.data) + column;
  for (int p = 0; p < kParts; ++p) {
    const HalfRegister half = narrowed(s.part[p]);
    if (at != nullptr && count == kLanes) __builtin_memcpy(at + p * kRegister, &half, sizeof(half));
    v.part[p] = widened(half);
  }
  if (at != nullptr && count < kLanes) store_some(at, v, count);
  return v;
}

using Finished = EpilogueCall::Kind;

// From s on, without and with a curve.
QKV_INLINE void finish_plainly(const EpilogueCall& f, const EpilogueRow& at, int64_t column, const Lanes& s,
                               int64_t count) {
  if (f.kind == Finished::residual) return store(at.y, column, count, load(at.residual, column, count) + s);
  put(at.y, column, count, s, f.add);
}

template <Finished W, Curve K>
QKV_INLINE void finish_curved(const EpilogueCall& f, const EpilogueRow& at, int64_t column, const Lanes& sum,
                              int64_t count) {
  constexpr Kind<K> kind;
  const GateNumbers by{splat(f.alpha), splat(f.limit), splat(f.shift)};
  if constexpr (W == Finished::curve) {
    const Lanes s = kept(f, at.pre, column, sum, count);
    store(at.y, column, count, apply(kind, s, by.alpha).value);
  } else if constexpr (W == Finished::gated) {
    const Lanes s = kept(f, at.pre, column, sum, count);
    store(at.y, column, count, gated(kind, load(at.gate, column, count), s, by));
  } else if constexpr (W == Finished::curve_dx) {
    const Lanes d = kept(f, {}, column, sum, count);
    put(at.y, column, count, d * apply(kind, load(at.pre, column, count), by.alpha).slope, f.add);
  } else {
    const Lanes d = kept(f, {}, column, sum, count);
    const GateGradients of = gated_dx(kind, load(at.gate, column, count), load(at.pre, column, count), d, by);
    if (at.dgate.data != nullptr) put(at.dgate, column, count, of.gate, f.dgate_add);
    if (at.y.data != nullptr) put(at.y, column, count, of.up, f.add);
  }
}

QKV_INLINE bool curved(const EpilogueCall& f) {
  return f.kind != Finished::plain && f.kind != Finished::residual;
}

// Calls f.template operator()<what, curve>() of a call that is curved: one loop for each.
template <Finished W, class F>
QKV_INLINE void with_curve(Curve curve, F&& f) {
  with_kind(
      curve, [&](auto kind) __attribute__((always_inline)) { f.template operator()<W, decltype(kind)::value>(); });
}
template <class F>
QKV_INLINE void with_finish(const EpilogueCall& call, F&& f) {
  if (call.kind == Finished::curve) return with_curve<Finished::curve>(call.curve, f);
  if (call.kind == Finished::gated) return with_curve<Finished::gated>(call.curve, f);
  if (call.kind == Finished::curve_dx) return with_curve<Finished::curve_dx>(call.curve, f);
  with_curve<Finished::gated_dx>(call.curve, f);
}

// One vector of curves at a time is not worth its code in every loop that calls it.
[[gnu::noinline]] void finish_curved_lanes(const EpilogueCall& f, int64_t row, int64_t column, const Lanes& s,
                                           int64_t count) {
  with_finish(f, [&]<Finished W, Curve K>() { finish_curved<W, K>(f, row_of(f, row), column, s, count); });
}

// Columns [column, column + count) of a row, sixteen at most.
QKV_INLINE void finish_lanes(const EpilogueCall& f, int64_t row, int64_t column, const Lanes& sum, int64_t count) {
  const Lanes s = with_bias(f, column, sum, count);
  if (curved(f)) return finish_curved_lanes(f, row, column, s, count);
  finish_plainly(f, row_of(f, row), column, s, count);
}

// What a row two below reads and writes is called near: stretches of rows are too short for the hardware to see them
// coming.
constexpr int64_t kRowsAhead = 2;

QKV_INLINE void call_near(const Floats& x, int64_t column) {
  if (x.data != nullptr) __builtin_prefetch(static_cast<const char*>(x.data) + column * (x.bf16 ? 2 : 4), 1);
}
QKV_INLINE void call_near(const EpilogueRow& at, int64_t column) {
  call_near(at.y, column);
  call_near(at.residual, column);
  call_near(at.pre, column);
  call_near(at.gate, column);
  call_near(at.dgate, column);
}

// The same for as many columns as there are.
void finish_row(const EpilogueCall& call, int64_t row, int64_t column, const float* sums, int64_t count) noexcept {
  const EpilogueCall f = call;
  const EpilogueRow at = row_of(f, row), ahead = row_of(f, row + kRowsAhead);
  const int64_t end = column + count / kLanes * kLanes;
  if (curved(f)) {
    with_finish(f, [=]<Finished W, Curve K>() {
      const float* from = sums;
      for (int64_t c = column; c < end; c += kLanes, from += kLanes) {
        call_near(ahead, c);
        finish_curved<W, K>(f, at, c, with_bias(f, c, load(from), kLanes), kLanes);
      }
    });
  } else {
    const float* from = sums;
    for (int64_t c = column; c < end; c += kLanes, from += kLanes) {
      call_near(ahead, c);
      finish_plainly(f, at, c, with_bias(f, c, load(from), kLanes), kLanes);
    }
  }
  const int64_t done = end - column;
  if (done < count) finish_lanes(f, row, end, load_some(sums + done, count - done), count - done);
}

}  // namespace
}  // namespace qkv::kernels::cpu

// The epilogue of a product, on up to sixteen sums of one row:
//
//   s = sum + bias
//   plain           y = s, or y += s
//   residual        y = residual + s
//   activation      pre = s    y = f(pre)
//   gated           pre = s    y = f(min(gate, limit)) (clamp(pre, limit) + shift)
//   activation_dx   d = s      y = d f'(pre), or +=
//   gated_dx        d = s      y and dgate, the gradients of gated
//
// pre and d are rounded to bf16 if that is their dtype in memory, so the bits are those of separate kernels.
#pragma once

#include "kernels/cpu/isa/activations.h"

namespace qkv::kernels::cpu {
namespace {

QKV_INLINE FloatRow row_of(const Matrix& m, int64_t row) {
  if (m.data == nullptr) return {};
  return {static_cast<char*>(m.data) + row * m.stride * (m.bf16 ? 2 : 4), m.bf16};
}

struct EpilogueRow {
  FloatRow y, residual, pre, gate, dgate;
};

QKV_INLINE EpilogueRow row_of(const EpilogueCall& f, int64_t row) {
  return {row_of(f.y, row), row_of(f.residual, row), row_of(f.pre, row), row_of(f.gate, row), row_of(f.dgate, row)};
}

QKV_INLINE Lanes with_bias(const EpilogueCall& f, int64_t column, const Lanes& sum, int64_t count) {
  return f.bias.data == nullptr ? sum : sum + load(f.bias, column, count);
}

// s as if stored and loaded again; stored if `to` is not null.
QKV_INLINE Lanes kept(const EpilogueCall& f, const FloatRow& to, int64_t column, const Lanes& s, int64_t count) {
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

using EpilogueKind = EpilogueCall::Kind;

// From s on, without and with an activation.
QKV_INLINE void epilogue_plain(const EpilogueCall& f, const EpilogueRow& at, int64_t column, const Lanes& s,
                               int64_t count) {
  if (f.kind == EpilogueKind::residual) return store(at.y, column, count, load(at.residual, column, count) + s);
  put(at.y, column, count, s, f.add);
}

template <EpilogueKind W, ActivationKind K>
QKV_INLINE void epilogue_activation(const EpilogueCall& f, const EpilogueRow& at, int64_t column, const Lanes& sum,
                                    int64_t count) {
  constexpr Kind<K> kind;
  const GateParams by{splat(f.alpha), splat(f.limit), splat(f.shift)};
  if constexpr (W == EpilogueKind::activation) {
    const Lanes s = kept(f, at.pre, column, sum, count);
    store(at.y, column, count, apply(kind, s, by.alpha).value);
  } else if constexpr (W == EpilogueKind::gated) {
    const Lanes s = kept(f, at.pre, column, sum, count);
    store(at.y, column, count, gated(kind, load(at.gate, column, count), s, by));
  } else if constexpr (W == EpilogueKind::activation_dx) {
    const Lanes d = kept(f, {}, column, sum, count);
    put(at.y, column, count, d * apply(kind, load(at.pre, column, count), by.alpha).slope, f.add);
  } else {
    const Lanes d = kept(f, {}, column, sum, count);
    const GateGradients of = gated_dx(kind, load(at.gate, column, count), load(at.pre, column, count), d, by);
    if (at.dgate.data != nullptr) put(at.dgate, column, count, of.gate, f.dgate_add);
    if (at.y.data != nullptr) put(at.y, column, count, of.up, f.add);
  }
}

QKV_INLINE bool has_activation(const EpilogueCall& f) {
  return f.kind != EpilogueKind::plain && f.kind != EpilogueKind::residual;
}

// Calls f.template operator()<kind, activation>() for a call with an activation: one loop for each.
template <EpilogueKind W, class F>
QKV_INLINE void with_activation(ActivationKind act, F&& f) {
  with_kind(
      act, [&](auto kind) __attribute__((always_inline)) { f.template operator()<W, decltype(kind)::value>(); });
}
template <class F>
QKV_INLINE void with_epilogue(const EpilogueCall& call, F&& f) {
  if (call.kind == EpilogueKind::activation) return with_activation<EpilogueKind::activation>(call.act, f);
  if (call.kind == EpilogueKind::gated) return with_activation<EpilogueKind::gated>(call.act, f);
  if (call.kind == EpilogueKind::activation_dx) return with_activation<EpilogueKind::activation_dx>(call.act, f);
  with_activation<EpilogueKind::gated_dx>(call.act, f);
}

// Not inlined: the code of all activations is too large for every caller's loop.
[[gnu::noinline]] void epilogue_activation_lanes(const EpilogueCall& f, int64_t row, int64_t column, const Lanes& s,
                                                 int64_t count) {
  with_epilogue(
      f, [&]<EpilogueKind W, ActivationKind K>() { epilogue_activation<W, K>(f, row_of(f, row), column, s, count); });
}

// Columns [column, column + count) of a row, sixteen at most.
QKV_INLINE void epilogue_lanes(const EpilogueCall& f, int64_t row, int64_t column, const Lanes& sum, int64_t count) {
  const Lanes s = with_bias(f, column, sum, count);
  if (has_activation(f)) return epilogue_activation_lanes(f, row, column, s, count);
  epilogue_plain(f, row_of(f, row), column, s, count);
}

// Prefetches what the row two below reads and writes: the runs are too short for the hardware prefetcher.
constexpr int64_t kRowsAhead = 2;

QKV_INLINE void prefetch(const FloatRow& x, int64_t column) {
  if (x.data != nullptr) __builtin_prefetch(static_cast<const char*>(x.data) + column * (x.bf16 ? 2 : 4), 1);
}
QKV_INLINE void prefetch(const EpilogueRow& at, int64_t column) {
  prefetch(at.y, column);
  prefetch(at.residual, column);
  prefetch(at.pre, column);
  prefetch(at.gate, column);
  prefetch(at.dgate, column);
}

// The same for any number of columns.
void epilogue_row(const EpilogueCall& call, int64_t row, int64_t column, const float* sums, int64_t count) noexcept {
  const EpilogueCall f = call;
  const EpilogueRow at = row_of(f, row), ahead = row_of(f, row + kRowsAhead);
  const int64_t end = column + count / kLanes * kLanes;
  if (has_activation(f)) {
    with_epilogue(f, [=]<EpilogueKind W, ActivationKind K>() {
      const float* from = sums;
      for (int64_t c = column; c < end; c += kLanes, from += kLanes) {
        prefetch(ahead, c);
        epilogue_activation<W, K>(f, at, c, with_bias(f, c, load(from), kLanes), kLanes);
      }
    });
  } else {
    const float* from = sums;
    for (int64_t c = column; c < end; c += kLanes, from += kLanes) {
      prefetch(ahead, c);
      epilogue_plain(f, at, c, with_bias(f, c, load(from), kLanes), kLanes);
    }
  }
  const int64_t done = end - column;
  if (done < count) epilogue_lanes(f, row, end, load_some(sums + done, count - done), count - done);
}

}  // namespace
}  // namespace qkv::kernels::cpu

// The warps' part of a product whose results are bf16: rounding, activations, gates and the way back through them.
#pragma once

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/product_finish.h"

namespace qkv::kernels::cuda {

// Calls f with an activation whose kind is a constant, so that loops inside have no switch.
template <class F>
__device__ __forceinline__ void with_activation(Activation act, F f) {
  using Kind = Activation::Kind;
  switch (act.kind) {
    case Kind::identity:
      return f(Activation{Kind::identity, act.alpha});
    case Kind::relu:
      return f(Activation{Kind::relu, act.alpha});
    case Kind::gelu_erf:
      return f(Activation{Kind::gelu_erf, act.alpha});
    case Kind::gelu_tanh:
      return f(Activation{Kind::gelu_tanh, act.alpha});
    case Kind::silu:
      return f(Activation{Kind::silu, act.alpha});
    case Kind::tanh:
      return f(Activation{Kind::tanh, act.alpha});
    case Kind::relu_squared:
      return f(Activation{Kind::relu_squared, act.alpha});
  }
}

// In bf16: two units of 16 x 128 sums. Shared memory: the sums; forward: the gate, then the results; backward: the gradients
// of pre in place of the sums, pre and then the gradients of the gate, and the gate.
template <FinishKind kKind>
requires(kKind != FinishKind::wide) struct Finisher<kKind> : Finishing {
  using Box = Unit<1>;
  static constexpr bool kForward = kKind == FinishKind::forward, kBackward = kKind == FinishKind::backward;
  static constexpr int kUnits = 2, kBuffers = kForward ? 2 : kBackward ? 3 : 1, kBytes = kBuffers * Box::kBytes;

  __device__ int row_of(int unit) const { return unit * 64; }

  __device__ void fetch(int unit) {
    if (kKind == FinishKind::narrow || (kForward && !args.gate)) return;
    const int some = rows(row_of(unit)), count = chunks(place.n, true, 16);
    expect(some * count * (kBackward && args.gate ? 32 : 16));
    const auto load = [&](const Plane& plane, int which) {
      Box::load(buffer + which * Box::kBytes, plane.at(place.m + row_of(unit), place.n), 2 * plane.row, lane, some,
                count, barrier);
    };
    if (kBackward) load(args.pre, 1);
    if (args.gate) load(args.gate, kBackward ? 2 : 1);
  }

  // Sums of the tensor core: rows lane / 4 (+ 8), columns 8 j + 2 (lane % 4) (+ 1).
  template <bool kBias>
  __device__ void put(const float* sums) const {
    constexpr int kBatch = 8;
    const int me = fresh(lane), r = me % 16;
    const uint32_t row = buffer + r * 256;
#pragma unroll
    for (int first = 0; first < kTileColumns / 8; first += kBatch) {
      float2 bias[kBatch] = {};
      if (kBias) load_bias(place.n + 8 * first + 2 * (me % 4), bias);
#pragma unroll
      for (int j = 0; j < kBatch; j += 2) {
        const float* s = sums + 4 * (first + j);
        uint32_t v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 b = bias[j + i / 2];
          v[i] = kBias ? pack(s[2 * i] + b.x, s[2 * i + 1] + b.y) : pack(s[2 * i], s[2 * i + 1]);
        }
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         row + ((first + j + me / 16 + r) & 15) * 16),
                     "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
                     : "memory");
      }
    }
  }

  template <class F>
  __device__ void run(F sums) {
#pragma unroll 1
    for (int unit = 0; unit < kUnits; ++unit) {
      wait_for_stores();
      if (unit == 1 && kKind != FinishKind::narrow) fetch(1);
      if (args.bias) {
        unit == 0 ? put<true>(sums(0)) : put<true>(sums(1));
      } else {
        unit == 0 ? put<false>(sums(0)) : put<false>(sums(1));
      }
      hand_over();
      if constexpr (kKind == FinishKind::narrow) {
        store(args.out, unit, 0);
      } else {
        if (kForward && args.pre) store(args.pre, unit, 0);
        if (kBackward || args.gate) barrier_wait(barrier, phase++ & 1);
        activate();
        hand_over();
        store(args.out, unit, kForward ? 1 : 0);
        if (kBackward && args.dgate) store(args.dgate, unit, 1);
      }
    }
  }

 private:
  __device__ void store(const Plane& plane, int unit, int which) const {
    const uint32_t from = buffer + which * Box::kBytes;
    const int some = rows(row_of(unit));
    std::byte* to = plane.at(place.m + row_of(unit), place.n);
    Box::store(to, 2 * plane.row, from, lane, some, chunks(place.n, true, 16));
    if (kKind == FinishKind::narrow) store_rest<Box>(*this, to, 2 * plane.row, from, some, place.n, true, 16);
  }

  // Columns n + 8 j (+ 1), all called for at once.
  template <int kBatch>
  __device__ void load_bias(int n, float2 (&bias)[kBatch]) const {
    const std::byte* from = args.bias.at(place.bias_row, 0);
    const int last = args.columns - 2;  // of those past the end any will do
    if (args.bias.narrow) {
      uint32_t raw[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) raw[j] = *reinterpret_cast<const uint32_t*>(from + 2 * min(n + 8 * j, last));
#pragma unroll
      for (int j = 0; j < kBatch; ++j) bias[j] = unpack(raw[j]);
    } else {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) bias[j] = *reinterpret_cast<const float2*>(from + 4 * min(n + 8 * j, last));
    }
  }

  __device__ void activate() const {
    with_activation(args.form.act, [&](Activation act) {
      Gating form = args.form;
      form.act = act;
      if constexpr (kForward) {
        if (!args.gate) return map<false>([&](float s, float, float) { return make_float2(apply(act, s).value, 0); });
        map<true>([&](float s, float gate, float) {
          const GateParts<float> parts(form, gate, s);
          return make_float2(parts.act * parts.up, 0);
        });
      } else {
        if (!args.gate) {
          return map<false>([&](float s, float pre, float) { return make_float2(s * apply(act, pre).slope, 0); });
        }
        map<true>([&](float s, float pre, float gate) {
          const GateParts<float> parts(form, gate, pre);
          return make_float2(s * parts.act * parts.up_slope, s * parts.act_slope * parts.up);
        });
      }
    });
  }

  // f(s, first, second) -> {out, dgate}, a batch of chunks at a time.
  template <bool kGate, class F>
  __device__ __forceinline__ void map(F f) const {
    constexpr int kInputs = 1 + (kBackward ? 1 : 0) + (kGate ? 1 : 0), kBatch = kInputs > 1 ? 2 : 4;
    const int me = fresh(lane), c = me % 16;
#pragma unroll 1
    for (int first = me / 16; first < 16; first += 2 * kBatch) {
      uint32_t in[kInputs][kBatch][4];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
#pragma unroll
        for (int which = 0; which < kInputs; ++which) {
          const uint4 v = read_chunk(buffer + which * Box::kBytes + Box::at(first + 2 * i, c));
          in[which][i][0] = v.x, in[which][i][1] = v.y, in[which][i][2] = v.z, in[which][i][3] = v.w;
        }
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        uint32_t y[4], z[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float2 a = unpack(in[0][i][k]), b = kInputs > 1 ? unpack(in[kInputs > 1 ? 1 : 0][i][k]) : float2{},
                       d = kInputs > 2 ? unpack(in[kInputs > 2 ? 2 : 0][i][k]) : float2{};
          const float2 low = f(a.x, b.x, d.x), high = f(a.y, b.y, d.y);
          y[k] = pack(low.x, high.x);
          z[k] = pack(low.y, high.y);
        }
        const uint32_t to = buffer + Box::at(first + 2 * i, c);
        write_chunk(to + (kForward ? Box::kBytes : 0), {y[0], y[1], y[2], y[3]});
        if (kBackward && kGate) write_chunk(to + Box::kBytes, {z[0], z[1], z[2], z[3]});
      }
    }
  }
};

}  // namespace qkv::kernels::cuda

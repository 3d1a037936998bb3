// The warps' part of a product whose results are bf16: rounding, activations, gates and the way back through them.
#pragma once

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/products/product_finish.h"

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

// In bf16, 16 x 128 sums at a time: two such units, 16 chunks of eight numbers a row. Shared memory: the sums, and
// up to two inputs.
template <FinishKind kKind>
requires(kKind != FinishKind::wide && kKind != FinishKind::joined && kKind != FinishKind::bare) struct Finisher<kKind> {
  static constexpr bool kBackward = kKind == FinishKind::backward;
  static constexpr int kUnits = 2, kUnitBytes = 4096,
                       kInputs = kKind == FinishKind::narrow ? 0
                                 : kBackward                 ? 2
                                                             : 1,
                       kBytes = (1 + kInputs) * kUnitBytes;

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  uint32_t buffer;
  int lane;

  __device__ static uint32_t at(int r, int c) { return static_cast<uint32_t>(r * 256 + ((c ^ (r & 7)) * 16)); }
  __device__ int row_of(int unit) const { return place.m + unit * 64 + lane / 16; }
  __device__ int column() const { return place.n + lane % 16 * 8; }
  // How many of the rows lane / 16, + 2, + 4 ... there are below `row_of`: 0 where the columns are outside.
  __device__ int rows_left(int unit) const { return column() < target.columns ? place.end_m - row_of(unit) : 0; }

  __device__ void fetch_from(const Plane& plane, int unit, uint32_t to) const {
    const std::byte* from = plane.at(row_of(unit), column());
    const int64_t step = 4 * plane.row;
    const int rows = rows_left(unit);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (2 * i < rows) fetch_chunk<16>(to + at(2 * i + lane / 16, lane % 16), from + i * step, 16);
    }
  }
  // Before there are sums.
  __device__ void begin() const {
    fetch(0);
  }
  // Calls for what a unit is joined with. Without a gate its place is for pre of the second unit, which comes with the first.
  __device__ void fetch(int unit) const {
    if constexpr (kBackward) {
      if (args.gate) {
        fetch_from(args.pre, unit, buffer + kUnitBytes);
        fetch_from(args.gate, unit, buffer + 2 * kUnitBytes);
      } else if (unit == 0) {
        fetch_from(args.pre, 0, buffer + kUnitBytes);
        fetch_from(args.pre, 1, buffer + 2 * kUnitBytes);
      }
    } else if constexpr (kInputs > 0) {
      if (args.gate) fetch_from(args.gate, unit, buffer + kUnitBytes);
    }
  }

  // Sums of the tensor core: rows lane / 4 (+ 8), columns 8 j + 2 (lane % 4) (+ 1).
  template <bool kBias>
  __device__ void put(const float* sums) const {
    const int r = lane % 16;
    const uint32_t row = buffer + r * 256;
    float2 bias[kTileColumns / 8] = {};
    if (kBias) load_bias(bias);
    const float scale = kKind == FinishKind::narrow && !kBias ? args.scaling() : 1.0F;
#pragma unroll
    for (int j = 0; j < kTileColumns / 8; j += 2) {
      const float* s = sums + 4 * j;
      uint32_t v[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 b = bias[j + i / 2];
        v[i] = kBias                         ? pack(s[2 * i] + b.x, s[2 * i + 1] + b.y)
               : kKind == FinishKind::narrow ? pack(scale * s[2 * i], scale * s[2 * i + 1])
                                             : pack(s[2 * i], s[2 * i + 1]);
      }
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       row + ((j + lane / 16) ^ (r & 7)) * 16),
                   "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
                   : "memory");
    }
  }

  __device__ void finish(int unit) const {
    if constexpr (kKind == FinishKind::narrow) {
      store(target.out, unit);
    } else {
      activate(unit);
    }
  }
  __device__ void activate(int unit) const {
    if (!kBackward && args.pre) store(args.pre, unit);
    with_activation(args.form.act, [&](Activation act) {
      Gating form = args.form;
      form.act = act;
      if constexpr (!kBackward) {
        if (!args.gate) {
          return map<false>(unit, [&](float s, float, float) { return make_float2(apply(act, s).value, 0); });
        }
        map<true>(unit, [&](float s, float gate, float) {
          const GateParts<float> parts(form, gate, s);
          return make_float2(parts.act * parts.up, 0);
        });
      } else {
        if (!args.gate) {
          return map<false>(unit, [&](float s, float pre, float) { return make_float2(s * apply(act, pre).slope, 0); });
        }
        map<true>(unit, [&](float s, float pre, float gate) {
          const GateParts<float> parts(form, gate, pre);
          return make_float2(s * parts.act * parts.up_slope, s * parts.act_slope * parts.up);
        });
      }
    });
  }

  template <class F>
  __device__ void run(F sums) const {
#pragma unroll 1
    for (int unit = 0; unit < kUnits; ++unit) {
      if (!kBackward && target.bias) {
        unit == 0 ? put<true>(sums(0)) : put<true>(sums(1));
      } else {
        unit == 0 ? put<false>(sums(0)) : put<false>(sums(1));
      }
      wait_for_chunks();
      finish(unit);
      __syncwarp();
      if (unit == 0) fetch(1);
      __syncwarp();
    }
  }

 private:
  // Of this thread's columns, all called for at once; those outside are never stored, whatever was added.
  __device__ void load_bias(float2 (&bias)[kTileColumns / 8]) const {
    const auto at = [&](int j) {
      return target.bias.at(place.bias_row, min(place.n + 8 * j, target.columns - 8) + 2 * (lane % 4));
    };
    if (target.bias.narrow) {
      uint32_t raw[kTileColumns / 8];
#pragma unroll
      for (int j = 0; j < kTileColumns / 8; ++j) raw[j] = *reinterpret_cast<const uint32_t*>(at(j));
#pragma unroll
      for (int j = 0; j < kTileColumns / 8; ++j) bias[j] = unpack(raw[j]);
    } else {
#pragma unroll
      for (int j = 0; j < kTileColumns / 8; ++j) bias[j] = *reinterpret_cast<const float2*>(at(j));
    }
  }

  // The sums as they are.
  __device__ void store(const Plane& plane, int unit) const {
    const int rows = rows_left(unit);
    std::byte* to = plane.at(row_of(unit), column());
    uint4 s[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) s[i] = read_chunk(buffer + at(2 * i + lane / 16, lane % 16));
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (2 * i < rows) *reinterpret_cast<uint4*>(to + i * 4 * plane.row) = s[i];
    }
  }

  // f(s, first, second) -> {out, dgate}
  template <bool kGate, class F>
  __device__ __forceinline__ void map(int unit, F f) const {
    constexpr bool kFirst = kBackward || kGate, kSecond = kBackward && kGate;
    const int rows = rows_left(unit);
    std::byte* to = target.out.at(row_of(unit), column());
    std::byte* to_gate = kSecond && args.dgate ? args.dgate.at(row_of(unit), column()) : nullptr;
    const uint32_t to_first = kUnitBytes + (kBackward && !kGate ? unit * kUnitBytes : 0);
#pragma unroll(kSecond ? 1 : 2)
    for (int i = 0; i < 8; ++i) {
      const uint32_t from = buffer + at(2 * i + lane / 16, lane % 16);
      const uint4 s = read_chunk(from), first = kFirst ? read_chunk(from + to_first) : uint4{},
                  second = kSecond ? read_chunk(from + 2 * kUnitBytes) : uint4{};
      const uint32_t in[3][4] = {
          {s.x, s.y, s.z, s.w}, {first.x, first.y, first.z, first.w}, {second.x, second.y, second.z, second.w}};
      uint32_t y[4], z[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float2 a = unpack(in[0][k]), b = unpack(in[1][k]), c = unpack(in[2][k]);
        const float2 low = f(a.x, b.x, c.x), high = f(a.y, b.y, c.y);
        y[k] = pack(low.x, high.x);
        z[k] = pack(low.y, high.y);
      }
      if (2 * i < rows) {
        *reinterpret_cast<uint4*>(to + i * 4 * target.out.row) = make_uint4(y[0], y[1], y[2], y[3]);
        if (kSecond && to_gate != nullptr) {
          *reinterpret_cast<uint4*>(to_gate + i * 4 * args.dgate.row) = make_uint4(z[0], z[1], z[2], z[3]);
        }
      }
    }
  }
};

}  // namespace qkv::kernels::cuda

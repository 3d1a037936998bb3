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

// Four matrices of 8 x 8, as the tensor core leaves them, to rows in shared memory.
__device__ inline void write_fragments(uint32_t at, const uint32_t (&v)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]), "r"(v[1]),
               "r"(v[2]), "r"(v[3])
               : "memory");
}

// Of this thread's columns in four blocks of eight from n on, all called for at once; those outside are never stored, whatever
// was added.
__device__ __forceinline__ void load_bias(const Target& target, const Place& place, int n, int lane,
                                          float2 (&bias)[4]) {
  const auto at = [&](int j) {
    return target.bias.at(place.bias_row, min(n + 8 * j, target.columns - 8) + 2 * (lane % 4));
  };
  if (target.bias.narrow) {
    uint32_t raw[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) raw[j] = *reinterpret_cast<const uint32_t*>(at(j));
#pragma unroll
    for (int j = 0; j < 4; ++j) bias[j] = unpack(raw[j]);
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) bias[j] = *reinterpret_cast<const float2*>(at(j));
  }
}

// A panel of 32 x 64 rounded numbers in shared memory, the lower 16 rows of a warp and the upper: rows of 8 chunks of eight, in
// an order that keeps threads out of each other's banks.
constexpr int kPanelBytes = 4096;
__device__ inline uint32_t in_panel(int r, int chunk) {
  return static_cast<uint32_t>(r * 128 + (chunk ^ (r & 7)) * 16);
}
// The sums of 64 columns from n on (rows lane / 4 (+ 8), columns 8 j + 2 (lane % 4) (+ 1)), with the bias or else scaled.
__device__ __forceinline__ void put_panel(uint32_t panel, const Target& target, const Place& place, int n, int lane,
                                          bool biased, float scale, const float* lower, const float* upper) {
#pragma unroll
  for (int first = 0; first < 8; first += 4) {
    float2 bias[4] = {};
    if (biased) load_bias(target, place, n + 8 * first, lane, bias);
#pragma unroll
    for (int j = first; j < first + 4; j += 2) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* s = (half == 0 ? lower : upper) + 4 * j;
        uint32_t v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 b = bias[j - first + i / 2];
          v[i] = biased ? pack(s[2 * i] + b.x, s[2 * i + 1] + b.y) : pack(scale * s[2 * i], scale * s[2 * i + 1]);
        }
        write_fragments(panel + half * (kPanelBytes / 2) + in_panel(lane % 16, j + lane / 16), v);
      }
    }
  }
}

// Sums (+ bias) rounded, a panel at a time.
template <int kColumns>
struct Finisher<FinishKind::narrow, kColumns> {
  static constexpr int kAcross = kColumns / 64, kUnits = 2 * kAcross, kBytes = kPanelBytes;

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  uint32_t buffer;
  int lane;

  __device__ void begin() const {}

  template <class F>
  __device__ __forceinline__ void run(F sums) const {
    const float scale = args.scaling();
    const bool biased = static_cast<bool>(target.bias);
#pragma unroll
    for (int across = 0; across < kAcross; ++across) {
      const int n = place.n + across * 64, column = n + lane % 8 * 8;
      put_panel(buffer, target, place, n, lane, biased, scale, sums(across), sums(kAcross + across));
      __syncwarp();
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int m = place.m + half * 64 + lane / 8, rows = column < target.columns ? place.end_m - m : 0;
        std::byte* to = target.out.at(m, column);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint4 chunk = read_chunk(buffer + half * (kPanelBytes / 2) + in_panel(4 * i + lane / 8, lane % 8));
          if (4 * i < rows) *reinterpret_cast<uint4*>(to + i * 8 * target.out.row) = chunk;
        }
      }
      __syncwarp();
    }
  }
};

// Activations. All sums are rounded into panels first, so that their registers are free; then a warp walks over units of
// 16 x 64 and calls for what the next one is joined with.
template <FinishKind kKind, int kColumns>
requires(kKind == FinishKind::forward || kKind == FinishKind::backward) struct Finisher<kKind, kColumns> {
  static constexpr bool kBackward = kKind == FinishKind::backward;
  static constexpr int kAcross = kColumns / 64, kUnits = 2 * kAcross, kBytes = kAcross * kPanelBytes;

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  uint32_t buffer;
  int lane;

  // Before there are sums: what they are joined with comes as far as the shared cache.
  __device__ void begin() const {
    if (kBackward && args.pre) call_for(args.pre);
    if (args.gate) call_for(args.gate);
  }

  template <class F>
  __device__ __forceinline__ void run(F sums) const {
#pragma unroll
    for (int across = 0; across < kAcross; ++across) {
      put_panel(buffer + across * kPanelBytes, target, place, place.n + across * 64, lane, !kBackward && target.bias, 1,
                sums(across), sums(kAcross + across));
    }
    __syncwarp();
    with_activation(args.form.act, [&](Activation act) {
      Gating form = args.form;
      form.act = act;
      if constexpr (!kBackward) {
        if (!args.gate) {
          return walk<false, false>({}, {}, [&](float s, float, float) { return make_float2(apply(act, s).value, 0); });
        }
        walk<true, false>(args.gate, {}, [&](float s, float gate, float) {
          const GateParts<float> parts(form, gate, s);
          return make_float2(parts.act * parts.up, 0);
        });
      } else {
        if (!args.gate) {
          return walk<true, false>(
              args.pre, {}, [&](float s, float pre, float) { return make_float2(s * apply(act, pre).slope, 0); });
        }
        walk<true, true>(args.pre, args.gate, [&](float s, float pre, float gate) {
          const GateParts<float> parts(form, gate, pre);
          return make_float2(s * parts.act * parts.up_slope, s * parts.act_slope * parts.up);
        });
      }
    });
    __syncwarp();
  }

 private:
  static constexpr int kSome = 4;  // chunks of a thread in a unit, 4 rows apart

  __device__ void call_for(const Plane& plane) const {
    const int m = place.m + lane / 16 * 64 + lane % 16;
#pragma unroll
    for (int across = 0; across < kAcross; ++across) {
      const int n = place.n + across * 64;
      if (m < place.end_m && n < target.columns) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(plane.at(m, n)) : "memory");
      }
    }
  }

  // This thread's first chunk of a unit of 16 x 64, and how many rows there are from there on: 0 where the column is outside.
  struct Unit {
    int m, n, rows;
  };
  __device__ Unit unit(int which) const {
    const int m = place.m + which % 2 * 64 + lane / 8, n = place.n + which / 2 * 64 + lane % 8 * 8;
    return {m, n, n < target.columns ? place.end_m - m : 0};
  }
  using Chunk = uint32_t[4];  // eight numbers
  __device__ __forceinline__ static void load(const Plane& plane, const Unit& u, Chunk (&to)[kSome]) {
    const std::byte* from = plane.at(u.m, u.n);
#pragma unroll
    for (int i = 0; i < kSome; ++i) {
      const uint4 v = 4 * i < u.rows ? *reinterpret_cast<const uint4*>(from + i * 8 * plane.row) : uint4{};
      to[i][0] = v.x, to[i][1] = v.y, to[i][2] = v.z, to[i][3] = v.w;
    }
  }
  __device__ __forceinline__ static void store(const Plane& plane, const Unit& u, int i, const Chunk& v) {
    std::byte* to = plane.at(u.m, u.n) + i * 8 * plane.row;
    if (4 * i < u.rows) *reinterpret_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
  }

  // f(s, first, second) -> {out, dgate}
  template <bool kFirst, bool kSecond, class F>
  __device__ __forceinline__ void walk(const Plane& first, const Plane& second, F f) const {
    Chunk next_first[kSome] = {}, next_second[kSome] = {};
    if (kFirst) load(first, unit(0), next_first);
    if (kSecond) load(second, unit(0), next_second);
#pragma unroll 1
    for (int which = 0; which < kUnits; ++which) {
      const Unit u = unit(which);
      Chunk in[3][kSome];
#pragma unroll
      for (int i = 0; i < kSome; ++i) {
        const uint4 s = read_chunk(buffer + which * (kPanelBytes / 2) + in_panel(4 * i + lane / 8, lane % 8));
        in[0][i][0] = s.x, in[0][i][1] = s.y, in[0][i][2] = s.z, in[0][i][3] = s.w;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          in[1][i][k] = next_first[i][k];
          in[2][i][k] = next_second[i][k];
        }
      }
      if (kFirst && which + 1 < kUnits) load(first, unit(which + 1), next_first);
      if (kSecond && which + 1 < kUnits) load(second, unit(which + 1), next_second);
#pragma unroll
      for (int i = 0; i < kSome; ++i) {
        Chunk y, z;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float2 a = unpack(in[0][i][k]), b = unpack(in[1][i][k]), c = unpack(in[2][i][k]);
          const float2 low = f(a.x, b.x, c.x), high = f(a.y, b.y, c.y);
          y[k] = pack(low.x, high.x);
          z[k] = pack(low.y, high.y);
        }
        if (!kBackward && args.pre) store(args.pre, u, i, in[0][i]);
        store(target.out, u, i, y);
        if (kSecond && args.dgate) store(args.dgate, u, i, z);
      }
    }
  }
};

}  // namespace qkv::kernels::cuda

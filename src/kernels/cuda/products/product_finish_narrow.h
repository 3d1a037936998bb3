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

// A panel of 32 x 64 rounded numbers in shared memory, the lower 16 rows of a warp and the upper: rows of 8 chunks of eight, in
// an order that keeps threads out of each other's banks.
constexpr int kPanelBytes = 4096;
__device__ inline uint32_t in_panel(int r, int chunk) {
  return static_cast<uint32_t>(r * 128 + (chunk ^ (r & 7)) * 16);
}
// Sums of 64 columns rounded as the tensor core leaves them, four matrices of 8 x 8 at a time: of the rows of 16, and of
// columns 16 j + 2 (lane % 4) (+ 1, + 8, + 9), two rows lane / 4 (+ 8).
template <int kRowHalves>
struct Fragments {
  uint32_t v[kRowHalves][4][4];

  // `sums`: of a half. With their `biases` or else scaled.
  template <bool kBiased, class F, class G>
  __device__ __forceinline__ void round(int lane, float scale, F biases, G sums) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float2 bias[2] = {};
      if constexpr (kBiased) {
        bias[0] = biases(16 * j + lane % 4 * 2);
        bias[1] = biases(16 * j + 8 + lane % 4 * 2);
      }
#pragma unroll
      for (int half = 0; half < kRowHalves; ++half) {
        const float* s = sums(half) + 8 * j;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 b = bias[i / 2];
          v[half][j][i] =
              kBiased ? pack(s[2 * i] + b.x, s[2 * i + 1] + b.y) : pack(scale * s[2 * i], scale * s[2 * i + 1]);
        }
      }
    }
  }
  __device__ __forceinline__ void write(uint32_t panel, int lane) const {
#pragma unroll
    for (int half = 0; half < kRowHalves; ++half) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        write_fragments(panel + half * (kPanelBytes / 2) + in_panel(lane % 16, 2 * j + lane / 16), v[half][j]);
      }
    }
  }
};

// Sums (+ bias) rounded, a panel at a time.
template <int kColumns>
struct Finisher<FinishKind::narrow, kColumns> {
  static constexpr int kAcross = kColumns / 64, kRowHalves = kHalves<kColumns>, kBytes = kRowHalves * kPanelBytes / 2;
  static constexpr bool kBiased = true;

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  const Worker& worker;
  uint32_t buffer = worker.buffer;
  int lane = worker.lane;

  __device__ void begin() const { bias().call_for(); }
  __device__ void call_ahead() const {}

  template <class F>
  __device__ __forceinline__ void run(F sums) const {
    bias().wait();
    const float scale = args.scaling();
    const bool biased = static_cast<bool>(target.bias);
    const int m = place.m + lane / 8, n = place.n + lane % 8 * 8;
    const Corner out(target.out, m, n);
#pragma unroll
    for (int across = 0; across < kAcross; ++across) {
      const auto biases = [&](int n) { return bias().two(64 * across + n); };
      const auto of_half = [&](int half) { return sums(half * kAcross + across); };
      Fragments<kRowHalves> all;
      biased ? all.template round<true>(lane, 1, biases, of_half)
             : all.template round<false>(lane, scale, biases, of_half);
      all.write(buffer, lane);
      __syncwarp();
      const int rows = n + across * 64 < target.columns ? place.end_m - m : 0;
#pragma unroll
      for (int half = 0; half < kRowHalves; ++half) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint4 chunk = shared_uint4(buffer + half * (kPanelBytes / 2) + in_panel(4 * i + lane / 8, lane % 8));
          const int row = half * 64 + 4 * i;
          if (row < rows) *reinterpret_cast<uint4*>(out(row, across * 128)) = chunk;
        }
      }
      __syncwarp();
    }
  }

 private:
  __device__ TileBias<kColumns> bias() const {
    return {target, place, worker};
  }
};

// Activations. All sums are rounded first, so that their registers are free, two panels into shared memory and a third in place;
// then a warp walks over units of 16 x 64 and calls for what the next one is joined with.
template <FinishKind kKind, int kColumns>
requires(kKind == FinishKind::forward || kKind == FinishKind::backward) struct Finisher<kKind, kColumns> {
  static constexpr bool kBackward = kKind == FinishKind::backward;
  static constexpr int kAcross = kColumns / 64, kUnits = 2 * kAcross, kPanels = 2, kBytes = kPanels * kPanelBytes;
  static constexpr bool kBiased = !kBackward;
  static_assert(kAcross <= kPanels + 1);

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  const Worker& worker;
  uint32_t buffer = worker.buffer;
  int lane = worker.lane;

  __device__ void begin() const {
    if (!kBackward) bias().call_for();
  }
  // Before there are sums: what they are joined with comes as far as the shared cache.
  __device__ void call_ahead() const {
    if (kBackward && args.pre) call_for(args.pre);
    if (args.gate) call_for(args.gate);
  }

  template <class F>
  __device__ __forceinline__ void run(F sums) const {
    if (!kBackward) bias().wait();
    Fragments<2> last;
    !kBackward&& target.bias ? put<true>(sums, last) : put<false>(sums, last);
#pragma unroll 1
    for (int panel = 0; panel < kAcross; panel += kPanels) {
      if (panel > 0) last.write(buffer, lane);
      __syncwarp();
      activate(panel);
      __syncwarp();
    }
  }

 private:
  __device__ TileBias<kColumns> bias() const {
    return {target, place, worker};
  }

  template <bool kWithBias, class F>
  __device__ __forceinline__ void put(F sums, Fragments<2>& last) const {
#pragma unroll
    for (int across = 0; across < kAcross; ++across) {
      const auto biases = [&](int n) { return bias().two(64 * across + n); };
      last.round<kWithBias>(lane, 1, biases, [&](int half) { return sums(half * kAcross + across); });
      if (across < kPanels) last.write(buffer + across * kPanelBytes, lane);
    }
  }

  __device__ __forceinline__ void activate(int panel) const {
    with_activation(args.form.act, [&](Activation act) {
      Gating form = args.form;
      form.act = act;
      if constexpr (!kBackward) {
        if (!args.gate) {
          return walk<false, false>(panel, {}, {},
                                    [&](float s, float, float) { return make_float2(apply(act, s).value, 0); });
        }
        walk<true, false>(panel, args.gate, {}, [&](float s, float gate, float) {
          const GateParts<float> parts(form, gate, s);
          return make_float2(parts.act * parts.up, 0);
        });
      } else {
        if (!args.gate) {
          return walk<true, false>(panel, args.pre, {}, [&](float s, float pre, float) {
            return make_float2(s * apply(act, pre).slope, 0);
          });
        }
        walk<true, true>(panel, args.pre, args.gate, [&](float s, float pre, float gate) {
          const GateParts<float> parts(form, gate, pre);
          return make_float2(s * parts.act * parts.up_slope, s * parts.act_slope * parts.up);
        });
      }
    });
  }

  __device__ void call_for(const Plane& plane) const {
    const int m = place.m + lane / 16 * 64 + lane % 16;
#pragma unroll
    for (int across = 0; across < kAcross; ++across) {
      const int n = place.n + across * 64;
      if (m < place.end_m && n < target.columns) prefetch(plane.at(m, n));
    }
  }

  using Chunk = uint32_t[4];  // eight numbers

  // A thread has four chunks of a unit of 16 x 64, four rows apart, and takes some at a time: where the first of them is from
  // the thread's first of the tile, and how many rows there are from it on, 0 where the column is outside.
  struct Turn {
    int row, bytes, rows;
  };
  template <int kSome>
  __device__ Turn turn(int which) const {
    const int unit = which * kSome / 4, row = unit % 2 * 64 + which * kSome % 4 * 4;
    const bool inside = place.n + unit / 2 * 64 + lane % 8 * 8 < target.columns;
    return {row, unit / 2 * 128, inside ? place.end_m - (place.m + lane / 8) - row : 0};
  }
  __device__ Corner corner(const Plane& plane) const {
    return {plane, place.m + lane / 8, place.n + lane % 8 * 8};
  }

  template <int kSome>
  __device__ __forceinline__ static void load(const Corner& from, const Turn& t, Chunk (&to)[kSome]) {
#pragma unroll
    for (int i = 0; i < kSome; ++i) {
      const uint4 v = 4 * i < t.rows ? *reinterpret_cast<const uint4*>(from(t.row + 4 * i, t.bytes)) : uint4{};
      to[i][0] = v.x, to[i][1] = v.y, to[i][2] = v.z, to[i][3] = v.w;
    }
  }
  __device__ __forceinline__ static void store(const Corner& to, const Turn& t, int i, bool there, const Chunk& v) {
    if (there && 4 * i < t.rows) {
      *reinterpret_cast<uint4*>(to(t.row + 4 * i, t.bytes)) = make_uint4(v[0], v[1], v[2], v[3]);
    }
  }

  // f(s, first, second) -> {out, dgate}, over the units of the panels from `panel` on.
  template <bool kFirst, bool kSecond, class F>
  __device__ __forceinline__ void walk(int panel, const Plane& first, const Plane& second, F f) const {
    constexpr int kSome = kSecond ? 2 : 4;  // chunks: of two inputs more would not fit into registers
    const int begin = 8 * panel / kSome, end = 8 * min(panel + kPanels, kAcross) / kSome;
    const bool keeps = !kBackward && args.pre;
    const Corner out = corner(target.out), pre = corner(args.pre), dgate = corner(args.dgate);
    const Corner from_first = corner(first), from_second = corner(second);
    Chunk next_first[kSome] = {}, next_second[kSome] = {};
    if (kFirst) load(from_first, turn<kSome>(begin), next_first);
    if (kSecond) load(from_second, turn<kSome>(begin), next_second);
#pragma unroll 1
    for (int which = begin; which < end; ++which) {
      const Turn now = turn<kSome>(which);
      const uint32_t unit = buffer + (which - begin) * kSome / 4 * (kPanelBytes / 2);
      Chunk in[3][kSome];
#pragma unroll
      for (int i = 0; i < kSome; ++i) {
        const uint4 s = shared_uint4(unit + in_panel(now.row % 64 + 4 * i + lane / 8, lane % 8));
        in[0][i][0] = s.x, in[0][i][1] = s.y, in[0][i][2] = s.z, in[0][i][3] = s.w;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          in[1][i][k] = next_first[i][k];
          in[2][i][k] = next_second[i][k];
        }
      }
      if (kFirst && which + 1 < end) load(from_first, turn<kSome>(which + 1), next_first);
      if (kSecond && which + 1 < end) load(from_second, turn<kSome>(which + 1), next_second);
#pragma unroll
      for (int i = 0; i < kSome; ++i) {
        if (!kBackward) store(pre, now, i, keeps, in[0][i]);
        Chunk y, z;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float2 a = unpack(in[0][i][k]), b = unpack(in[1][i][k]), c = unpack(in[2][i][k]);
          const float2 low = f(a.x, b.x, c.x), high = f(a.y, b.y, c.y);
          y[k] = pack(low.x, high.x);
          z[k] = pack(low.y, high.y);
        }
        store(out, now, i, true, y);
        if (kSecond) store(dgate, now, i, static_cast<bool>(args.dgate), z);
      }
    }
  }
};

}  // namespace qkv::kernels::cuda

// Activations with their slopes, and random numbers, as kernels/ref has them.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/formulas.h"
#include "core/kernels.h"
#include "kernels/cuda/ptx.h"

namespace qkv::kernels::cuda {

template <class R>
struct ValueAndSlope {
  R value, slope;
};

template <class R>
inline constexpr R kLog2EAs = static_cast<R>(1.44269504088896340736);
inline constexpr float kLog2E = kLog2EAs<float>;

// exp(x) by one instruction of the multi-function unit: within 2^-21 for |x| < 8, less exact the larger |x|.
__device__ inline float fast_exp(float x) {
  return fast_exp2(x * kLog2E);
}

// 1 / (1 + 2^-x); in float by fast instructions. sigmoid(x) is that of log2(e) x.
template <class R>
__device__ R sigmoid2(R x) {
  if constexpr (sizeof(R) == sizeof(float)) {
    return fast_inverse(1 + fast_exp2(-x));
  } else {
    return 1 / (1 + exp2(-x));
  }
}
template <class R>
__device__ R sigmoid(R x) {
  return sigmoid2(x * kLog2EAs<R>);
}

template <Activation::Kind kKind>
struct OfKind {
  // act(x) and its slope.
  template <class R>
  static __device__ ValueAndSlope<R> apply(R alpha, R x) {
    constexpr R kRootHalf = static_cast<R>(0.70710678118654752440), kInvRootPi = static_cast<R>(0.56418958354775628695),
                kRootTwo = static_cast<R>(1.41421356237309504880);
    using Kind = Activation::Kind;
    if constexpr (kKind == Kind::identity) {
      return {x, 1};
    } else if constexpr (kKind == Kind::relu) {
      return {x <= 0 ? 0 : x, x > 0 ? R{1} : R{0}};  // NaN stays NaN
    } else if constexpr (kKind == Kind::relu_squared) {
      const R positive = x <= 0 ? R{0} : x;
      return {positive * positive, 2 * positive};
    } else if constexpr (kKind == Kind::gelu_erf) {
      const R cdf = (1 + erf(x * kRootHalf)) / 2;
      return {x * cdf, cdf + x * exp(-x * x / 2) * kInvRootPi * kRootHalf};
    } else if constexpr (kKind == Kind::gelu_tanh) {
      // (1 + tanh(u)) / 2 is sigmoid(2 u), and 2 u = x (k + c x^2)
      constexpr R k = 2 * kRootTwo * kInvRootPi, c = static_cast<R>(0.044715) * k;
      constexpr R in_two = kLog2EAs<R>;
      const R square = x * x, s = sigmoid2(x * fma(in_two * c, square, in_two * k)), value = x * s;
      return {value, fma(value * (1 - s), fma(3 * c, square, k), s)};
    } else if constexpr (kKind == Kind::silu) {
      const R s = sigmoid(alpha * x);
      return {x * s, s + alpha * x * s * (1 - s)};
    } else {
      const R t = tanh(x / alpha);
      return {alpha * t, 1 - t * t};
    }
  }
};

// Calls f(OfKind<kind>): one branch for as many numbers as f takes.
template <class F>
__device__ void by_kind(Activation::Kind kind, const F& f) {
  switch (kind) {
    case Activation::Kind::identity:
      return f(OfKind<Activation::Kind::identity>{});
    case Activation::Kind::relu:
      return f(OfKind<Activation::Kind::relu>{});
    case Activation::Kind::gelu_erf:
      return f(OfKind<Activation::Kind::gelu_erf>{});
    case Activation::Kind::gelu_tanh:
      return f(OfKind<Activation::Kind::gelu_tanh>{});
    case Activation::Kind::silu:
      return f(OfKind<Activation::Kind::silu>{});
    case Activation::Kind::tanh:
      return f(OfKind<Activation::Kind::tanh>{});
    case Activation::Kind::relu_squared:
      return f(OfKind<Activation::Kind::relu_squared>{});
  }
}

template <class R>
__device__ ValueAndSlope<R> apply(Activation act, R x) {
  ValueAndSlope<R> result{0, 0};
  by_kind(act.kind, [&](auto kind) { result = kind.apply(static_cast<R>(act.alpha), x); });
  return result;
}

// The two factors of a gated activation, and their derivatives (0 where clamped).
template <class R>
struct GateParts {
  R act, act_slope, up, up_slope;

  __device__ GateParts(const Gating& form, R gate, R up_in) {
    by_kind(form.act.kind, [&](auto kind) { *this = GateParts(kind, form, gate, up_in); });
  }
  template <class OfKind>
  __device__ GateParts(OfKind kind, const Gating& form, R gate, R up_in) {
    const bool clamped = form.limit > 0;
    const R limit = static_cast<R>(form.limit);
    const auto a = kind.apply(static_cast<R>(form.act.alpha), clamped && gate > limit ? limit : gate);
    act = a.value;
    act_slope = clamped && !(gate <= limit) ? R{0} : a.slope;
    const R inside = !clamped ? up_in : up_in < -limit ? -limit : up_in > limit ? limit : up_in;
    up = inside + static_cast<R>(form.shift);
    up_slope = !clamped || fabs(up_in) <= limit ? R{1} : R{0};
  }
};

// Philox4x32-10, as base/philox.h: the words of four columns.
struct FourWords {
  uint32_t c[4];
};
__device__ inline FourWords random_four(uint32_t key0, uint32_t key1, uint64_t row, uint64_t block) {
  FourWords words{{static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), static_cast<uint32_t>(block),
                   static_cast<uint32_t>(block >> 32)}};
  auto& c = words.c;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(b),
                              static_cast<uint32_t>(a >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(a)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return words;
}
__device__ inline uint32_t random_u32(uint32_t key0, uint32_t key1, uint64_t row, uint64_t column) {
  const FourWords words = random_four(key0, key1, row, column >> 2);
  const auto& c = words.c;
  return (column & 2) != 0 ? ((column & 1) != 0 ? c[3] : c[2]) : ((column & 1) != 0 ? c[1] : c[0]);
}

// The factor of a dropped or kept number: 0 or 1 / (1 - p).
struct Drop {
  float p = 0, kept = 1;
  uint32_t least = 0;  // a word below it is dropped: the 24 highest bits of those kept are p 2^24 or more
  uint32_t key0 = 0, key1 = 0;
  uint64_t first_row = 0;

  Drop() = default;
  explicit Drop(const Dropout& d)
      : p(d.p),
        kept(1 / (1 - d.p)),
        least(static_cast<uint32_t>(std::ceil(static_cast<double>(d.p) * 0x1p24)) << 8),
        key0(d.key[0]),
        key1(d.key[1]),
        first_row(d.first_row) {}
  template <class R>
  __device__ R factor(int64_t row, uint64_t column) const {
    if (p == 0) return 1;
    const uint32_t word = random_u32(key0, key1, first_row + static_cast<uint64_t>(row), column);
    return of_word<R>(word);
  }
  // Of the columns 4 block ... 4 block + 3.
  template <class R>
  __device__ void factors(int64_t row, uint64_t block, R (&f)[4]) const {
    const FourWords words = random_four(key0, key1, first_row + static_cast<uint64_t>(row), block);
#pragma unroll
    for (int i = 0; i < 4; ++i) f[i] = p == 0 ? R{1} : of_word<R>(words.c[i]);
  }
  // Which of 32 columns from 32 word on are kept, a bit for each.
  __device__ uint32_t bits(int64_t row, uint64_t word) const {
    uint32_t found = 0;
#pragma unroll
    for (int four = 0; four < 8; ++four) {
      const FourWords words = random_four(key0, key1, first_row + static_cast<uint64_t>(row), 8 * word + four);
#pragma unroll
      for (int i = 0; i < 4; ++i) found |= static_cast<uint32_t>(words.c[i] >= least) << (4 * four + i);
    }
    return found;
  }
  // v of those columns, dropped.
  template <class R>
  __device__ void apply(int64_t row, uint64_t block, R (&v)[4]) const {
    R f[4];
    factors(row, block, f);
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = f[i] == 0 ? R{0} : v[i] * f[i];
  }
  template <class R>
  __device__ R of_word(uint32_t word) const {
    if constexpr (sizeof(R) == sizeof(float)) {
      return word >= least ? kept : 0;
    } else {
      return word >= least ? 1 / (1 - static_cast<R>(p)) : R{0};
    }
  }
};

// The same of bits that were found before (kept_shape).
struct Kept {
  const uint32_t* bits = nullptr;  // absent: nothing is dropped
  int64_t words = 0;               // of a row
  float factor = 1;

  Kept() = default;
  Kept(const Tensor& kept, const Dropout& d)
      : bits(d.p > 0 ? kept.as<uint32_t>() : nullptr), words(d.p > 0 ? kept.dim(1) : 0), factor(Drop(d).kept) {}
  __device__ explicit operator bool() const { return bits != nullptr; }
  // Which of the columns c ... c + 3 are kept, in the lowest bits; c is a multiple of four.
  __device__ uint32_t word(int64_t row, int64_t c) const { return bits[row * words + c / 32]; }
  __device__ uint32_t four(int64_t row, int64_t c) const { return word(row, c) >> (c % 32); }
  // v of those columns, dropped.
  template <class R>
  __device__ void apply(int64_t row, int64_t c, R (&v)[4]) const {
    apply(four(row, c), v);
  }
  template <class R>
  __device__ void apply(uint32_t four, R (&v)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = (four >> i & 1) != 0 ? v[i] * static_cast<R>(factor) : R{0};
  }
};

}  // namespace qkv::kernels::cuda

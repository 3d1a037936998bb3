// Activations, their derivatives, and gated activations.
#pragma once

#include "kernels/cpu/isa/rows.h"

namespace qkv::kernels::cpu {
namespace {

template <unsigned long Count>
QKV_INLINE Lanes polynomial(const Lanes& x, const float (&highest_first)[Count]) {
  Lanes y = splat(highest_first[0]);
  for (unsigned long k = 1; k < Count; ++k) y = multiply_add(y, x, splat(highest_first[k]));
  return y;
}

QKV_INLINE Lanes sigmoid(const Lanes& x) {
  return splat(1) / (splat(1) + exp(-x));
}

// Cephes' tanhf: x + x^3 P(x^2) near 0, 1 - 2 / (e^2|x| + 1) elsewhere. Largest error: 1.3 ulp.
QKV_INLINE Lanes tanh(const Lanes& x) {
  static constexpr float kNear[] = {-5.70498872745e-3F, 2.06390887954e-2F, -5.37397155531e-2F, 1.33314422036e-1F,
                                    -3.33332819422e-1F};
  const Lanes size = absolute(x), square = x * x;
  const Lanes near = multiply_add(x * square, polynomial(square, kNear), x);
  const Lanes far = splat(1) - splat(2) / (exp(size + size) + splat(1));
  return if_less(size, splat(0.625F), near, if_less(x, splat(0), -far, far));
}

// The normal distribution: its density times sqrt(2 pi), and its integral up to x.
struct Normal {
  Lanes bell, cdf;
};

// cdf(-a) = e^(-a^2 / 2) R(a) for a >= 0, with R(a) (a + 4) a polynomial in (a - 4) / (a + 4), fitted at Chebyshev
// nodes for a up to 14 (relative error 1.3e-8). The square is split in two parts so that the tail keeps its digits:
// the error of x cdf(x) is at most 5.3 ulp for all |x| < 12.9.
QKV_INLINE Normal normal(const Lanes& x) {
  static constexpr float kRatio[] = {-0.0001201844011F, 0.0002012617303F, 0.001572317879F, -0.0035261837F,
                                     -0.007529250703F,  0.06040668873F,   -0.1865226849F,  0.3871366841F,
                                     -0.6078966183F,    0.7552851383F};
  const Lanes a = minimum(absolute(x), splat(14));  // the tail is 0 well before
  const Lanes coarse = each(a, [](Register v) { return (Register)((IntRegister)v & ~0xfff); });
  const Lanes minus_half = splat(-0.5F);
  const Lanes bell = exp(minus_half * coarse * coarse, minus_half * (a - coarse) * (a + coarse));
  const Lanes one_over = splat(1) / (a + splat(4));
  const Lanes tail = bell * (polynomial((a - splat(4)) * one_over, kRatio) * one_over);
  return {bell, if_less(splat(0), x, splat(1) - tail, tail)};
}

struct ActivationValue {
  Lanes value, slope;
};

template <ActivationKind K>
struct Kind {
  static constexpr ActivationKind value = K;
};

template <ActivationKind K>
QKV_INLINE ActivationValue apply(Kind<K>, const Lanes& x, const Lanes& alpha) {
  const Lanes one = splat(1);
  if constexpr (K == ActivationKind::identity) {
    return {x, one};
  } else if constexpr (K == ActivationKind::relu) {
    // NaN stays NaN; the sum makes -0 a 0.
    return {maximum(x, splat(0)) + splat(0), if_less(splat(0), x, one, splat(0))};
  } else if constexpr (K == ActivationKind::relu_squared) {
    const Lanes positive = maximum(x, splat(0)) + splat(0);
    return {positive * positive, positive + positive};
  } else if constexpr (K == ActivationKind::gelu_erf) {
    const Normal at = normal(x);
    return {x * at.cdf, multiply_add(x, at.bell * splat(0.398942280F), at.cdf)};
  } else if constexpr (K == ActivationKind::gelu_tanh) {
    // (1 + tanh u) / 2 = sigmoid(2 u),  2 u = x (k + 0.044715 k x^2),  k = 2 sqrt(2 / pi)
    constexpr float kTwice = 1.59576912F, kCubic = 0.0713548163F;
    const Lanes square = x * x;
    const Lanes s = sigmoid(x * multiply_add(square, splat(kCubic), splat(kTwice)));
    const Lanes transpose = x * multiply_add(square, splat(3 * kCubic), splat(kTwice));
    return {x * s, multiply_add(transpose, s * (one - s), s)};
  } else if constexpr (K == ActivationKind::silu) {
    const Lanes s = sigmoid(alpha * x);
    return {x * s, multiply_add(alpha * x, s * (one - s), s)};
  } else {
    const Lanes t = tanh(x / alpha);
    return {alpha * t, one - t * t};
  }
}

// Calls f with the kind as a type: one loop per kind.
template <class F>
QKV_INLINE void with_kind(ActivationKind act, F&& f) {
  switch (act) {
    case ActivationKind::identity:
      return f(Kind<ActivationKind::identity>{});
    case ActivationKind::relu:
      return f(Kind<ActivationKind::relu>{});
    case ActivationKind::gelu_erf:
      return f(Kind<ActivationKind::gelu_erf>{});
    case ActivationKind::gelu_tanh:
      return f(Kind<ActivationKind::gelu_tanh>{});
    case ActivationKind::silu:
      return f(Kind<ActivationKind::silu>{});
    case ActivationKind::tanh:
      return f(Kind<ActivationKind::tanh>{});
    case ActivationKind::relu_squared:
      return f(Kind<ActivationKind::relu_squared>{});
  }
}

void activation_row(const ActivationCall& call) noexcept {
  const ActivationCall c = call;
  const Lanes alpha = splat(c.alpha);
  with_kind(c.act, [=](auto kind) {
    along(
        c.count, QKV_STEP(=) { store(c.y, i, n, apply(kind, load(c.x, i, n), alpha).value); });
  });
}

void activation_dx_row(const ActivationCall& call) noexcept {
  const ActivationCall c = call;
  const Lanes alpha = splat(c.alpha);
  with_kind(c.act, [=](auto kind) {
    along(
        c.count, QKV_STEP(=) { put(c.y, i, n, load(c.dy, i, n) * apply(kind, load(c.x, i, n), alpha).slope, c.add); });
  });
}

struct GateParams {
  Lanes alpha, limit, shift;
};

template <ActivationKind K>
QKV_INLINE Lanes gated(Kind<K> kind, const Lanes& gate, const Lanes& up, const GateParams& by) {
  const Lanes act = apply(kind, minimum(gate, by.limit), by.alpha).value;
  return act * (minimum(maximum(up, -by.limit), by.limit) + by.shift);
}

struct GateGradients {
  Lanes gate, up;
};

template <ActivationKind K>
QKV_INLINE GateGradients gated_dx(Kind<K> kind, const Lanes& gate, const Lanes& up, const Lanes& dy,
                                  const GateParams& by) {
  const Lanes none = splat(0);
  const ActivationValue act = apply(kind, minimum(gate, by.limit), by.alpha);
  const Lanes slope = if_less(by.limit, gate, none, act.slope);
  return {dy * slope * (minimum(maximum(up, -by.limit), by.limit) + by.shift),
          if_less(by.limit, absolute(up), none, dy * act.value)};
}

void gated_row(const GateCall& call) noexcept {
  const GateCall c = call;
  const GateParams by{splat(c.alpha), splat(c.limit), splat(c.shift)};
  with_kind(c.act, [=](auto kind) {
    along(
        c.count, QKV_STEP(=) { store(c.y, i, n, gated(kind, load(c.gate, i, n), load(c.up, i, n), by)); });
  });
}

void gated_dx_row(const GateCall& call) noexcept {
  const GateCall c = call;
  const GateParams by{splat(c.alpha), splat(c.limit), splat(c.shift)};
  with_kind(c.act, [=](auto kind) {
    along(
        c.count, QKV_STEP(=) {
          const GateGradients d = gated_dx(kind, load(c.gate, i, n), load(c.up, i, n), load(c.dy, i, n), by);
          if (c.dgate.data != nullptr) put(c.dgate, i, n, d.gate, c.dgate_add);
          if (c.dup.data != nullptr) put(c.dup, i, n, d.up, c.dup_add);
        });
  });
}

}  // namespace
}  // namespace qkv::kernels::cpu

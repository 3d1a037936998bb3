// One step of AdamW for one number; the formula is in ops/optim.cpp.
#pragma once

#include <cmath>

#include "core/kernels.h"

namespace qkv::kernels::cuda {

template <class R>
struct AdamWRule {
  R beta1, beta2, eps, factor, shrink, root2, rate;

  AdamWRule() = default;
  explicit AdamWRule(const AdamWArgs& a)
      : beta1(static_cast<R>(a.beta1)),
        beta2(static_cast<R>(a.beta2)),
        eps(static_cast<R>(a.eps)),
        factor(static_cast<R>(a.grad_factor)),
        shrink(static_cast<R>(1 - a.lr * a.decay)) {
    const auto step = static_cast<double>(a.step);
    root2 = static_cast<R>(std::sqrt(1 - std::pow(a.beta2, step)));
    rate = static_cast<R>(a.lr) / static_cast<R>(1 - std::pow(a.beta1, step));
  }

  __device__ void step(R& w, R g, R& m, R& v) const {
    const R grad = g * factor;
    m = beta1 * m + (1 - beta1) * grad;
    v = beta2 * v + (1 - beta2) * grad * grad;
    w = w * shrink - rate * m / (sqrt(v) / root2 + eps);
  }
};

}  // namespace qkv::kernels::cuda

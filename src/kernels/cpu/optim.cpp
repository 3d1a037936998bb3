// Optimiser steps on f32 weights; formulas in ops/optim.cpp.
#include <cmath>

#include "kernels/cpu/shared.h"

namespace qkv::kernels::cpu {

template <const Forms& F>
void adamw(const Exec& exec, const AdamWArgs& a) noexcept {
  if (!all_f32({&a.w, &a.g, &a.m, &a.v})) return ref::adamw(ref::Split(*exec.pool), a);
  const auto step = static_cast<double>(a.step);
  const auto correction1 = static_cast<float>(1 - std::pow(a.beta1, step));
  over_stretches(exec, a.w.count(), 64, [&](Range range, int) {
    F.adamw_step({.w = a.w.as<float>() + range.begin,
                  .m = a.m.as<float>() + range.begin,
                  .v = a.v.as<float>() + range.begin,
                  .g = a.g.as<float>() + range.begin,
                  .count = range.end - range.begin,
                  .beta1 = static_cast<float>(a.beta1),
                  .beta2 = static_cast<float>(a.beta2),
                  .eps = static_cast<float>(a.eps),
                  .factor = static_cast<float>(a.grad_factor),
                  .shrink = static_cast<float>(1 - a.lr * a.decay),
                  .rate = static_cast<float>(a.lr) / correction1,
                  .root2 = static_cast<float>(std::sqrt(1 - std::pow(a.beta2, step)))});
  });
}

template <const Forms& F>
void sgd(const Exec& exec, const SgdArgs& a) noexcept {
  if (!all_f32({&a.w, &a.g, &a.buffer})) return ref::sgd(ref::Split(*exec.pool), a);
  over_stretches(exec, a.w.count(), 64, [&](Range range, int) {
    F.sgd_step({.w = a.w.as<float>() + range.begin,
                .buffer = a.buffer.defined() ? a.buffer.as<float>() + range.begin : nullptr,
                .g = a.g.as<float>() + range.begin,
                .count = range.end - range.begin,
                .rate = static_cast<float>(a.lr),
                .momentum = static_cast<float>(a.momentum),
                .decay = static_cast<float>(a.decay),
                .factor = static_cast<float>(a.grad_factor)});
  });
}

QKV_FOR_ALL_FORMS(adamw, AdamWArgs)
QKV_FOR_ALL_FORMS(sgd, SgdArgs)

}  // namespace qkv::kernels::cpu

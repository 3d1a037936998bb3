// Optimiser steps, one thread per weight.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
void adamw_as(const Exec& exec, const AdamWArgs& a) {
  const View w(a.w), g(a.g), m(a.m), v(a.v);
  const R beta1 = static_cast<R>(a.beta1), beta2 = static_cast<R>(a.beta2), eps = static_cast<R>(a.eps);
  const R factor = static_cast<R>(a.grad_factor), shrink = static_cast<R>(1 - a.lr * a.decay);
  const auto step = static_cast<double>(a.step);
  const R correction1 = static_cast<R>(1 - std::pow(a.beta1, step));
  const R root2 = static_cast<R>(std::sqrt(1 - std::pow(a.beta2, step)));
  const R rate = static_cast<R>(a.lr) / correction1;
  each_thread(exec, a.w.count(), [=] __device__(int64_t i) {
    const R grad = g.get<R>(i) * factor;
    const R mi = beta1 * m.get<R>(i) + (1 - beta1) * grad;
    const R vi = beta2 * v.get<R>(i) + (1 - beta2) * grad * grad;
    m.set(i, mi);
    v.set(i, vi);
    w.set(i, w.get<R>(i) * shrink - rate * mi / (sqrt(vi) / root2 + eps));
  });
}

template <class R>
void sgd_as(const Exec& exec, const SgdArgs& a) {
  const View w(a.w), g(a.g), buffer(a.buffer);
  const R lr = static_cast<R>(a.lr), momentum = static_cast<R>(a.momentum), decay = static_cast<R>(a.decay);
  const R factor = static_cast<R>(a.grad_factor);
  each_thread(exec, a.w.count(), [=] __device__(int64_t i) {
    R update = g.get<R>(i) * factor;
    if (buffer) {
      update += momentum * buffer.get<R>(i);
      buffer.set(i, update);
    }
    w.set(i, w.get<R>(i) - lr * (update + decay * w.get<R>(i)));
  });
}

}  // namespace

void adamw(const Exec& exec, const AdamWArgs& a) noexcept {
  in_real(a.w, [&](auto r) { adamw_as<decltype(r)>(exec, a); });
}
void sgd(const Exec& exec, const SgdArgs& a) noexcept {
  in_real(a.w, [&](auto r) { sgd_as<decltype(r)>(exec, a); });
}

}  // namespace qkv::kernels::cuda

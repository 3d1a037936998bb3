// Optimiser steps, element by element; formulas in ops/optim.cpp.
#include <cmath>

#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {

void adamw(const Split& split, const AdamWArgs& a) {
  in_real(a.w, [&]<class R>() {
    const Out<R> w(a.w), m(a.m), v(a.v);
    const In<R> g(a.g);
    const R beta1 = static_cast<R>(a.beta1), beta2 = static_cast<R>(a.beta2), eps = static_cast<R>(a.eps);
    const R factor = static_cast<R>(a.grad_factor), shrink = static_cast<R>(1 - a.lr * a.decay);
    const auto step = static_cast<double>(a.step);
    const R correction1 = static_cast<R>(1 - std::pow(a.beta1, step));
    const R root2 = static_cast<R>(std::sqrt(1 - std::pow(a.beta2, step)));
    const R rate = static_cast<R>(a.lr) / correction1;
    split(a.w.count(), [&](Range range) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        const R grad = g[i] * factor;
        const R mi = beta1 * m.get(i) + (1 - beta1) * grad;
        const R vi = beta2 * v.get(i) + (1 - beta2) * grad * grad;
        m.set(i, mi);
        v.set(i, vi);
        w.set(i, w.get(i) * shrink - rate * mi / (std::sqrt(vi) / root2 + eps));
      }
    });
  });
}

void sgd(const Split& split, const SgdArgs& a) {
  in_real(a.w, [&]<class R>() {
    const Out<R> w(a.w);
    const In<R> g(a.g);
    const R lr = static_cast<R>(a.lr), momentum = static_cast<R>(a.momentum), decay = static_cast<R>(a.decay);
    const R factor = static_cast<R>(a.grad_factor);
    split(a.w.count(), [&](Range range) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        R update = g[i] * factor;
        if (a.buffer.defined()) {
          const Out<R> buffer(a.buffer);
          update += momentum * buffer.get(i);
          buffer.set(i, update);
        }
        w.set(i, w.get(i) - lr * (update + decay * w.get(i)));
      }
    });
  });
}

}  // namespace qkv::kernels::ref

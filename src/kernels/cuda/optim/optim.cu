// Optimiser steps, number by number.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/optim/adamw.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
void adamw_as(const Exec& exec, const AdamWArgs& a) {
  const AdamWRule<R> rule(a);
  map<R, 3, 4>(exec, {Grad{a.w}, Grad{a.m}, Grad{a.v}}, {a.w, a.g, a.m, a.v}, [=] __device__(const auto& x, auto& y) {
    each_of(y, [&](int i) {
      y[0][i] = x[0][i];
      y[1][i] = x[2][i];
      y[2][i] = x[3][i];
      rule.step(y[0][i], x[1][i], y[1][i], y[2][i]);
    });
  });
}

template <class R>
void sgd_as(const Exec& exec, const SgdArgs& a) {
  const R lr = static_cast<R>(a.lr), momentum = static_cast<R>(a.momentum), decay = static_cast<R>(a.decay);
  const R factor = static_cast<R>(a.grad_factor);
  const bool keeps = a.buffer.defined();
  map<R, 2, 3>(exec, {Grad{a.w}, Grad{a.buffer}}, {a.w, a.g, keeps ? a.buffer : a.g},
               [=] __device__(const auto& x, auto& y) {
                 each_of(y, [&](int i) {
                   R update = x[1][i] * factor;
                   if (keeps) update += momentum * x[2][i];
                   y[0][i] = x[0][i] - lr * (update + decay * x[0][i]);
                   y[1][i] = update;
                 });
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

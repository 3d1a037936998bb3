// What layer_norm and rms_norm share with their gradients.
#pragma once

#include "kernels/cuda/rows/row_parts.h"

namespace qkv::kernels::cuda {

template <class R>
R* numbers_of(const Tensor& t) {
  return t.defined() ? t.as<R>() : nullptr;
}

// The factors of some columns: w + offset, or 1.
template <class W, class R>
__device__ void load_factors(const W& w, int64_t c, R offset, R (&u)[kRowPack]) {
  if (w) w.load(0, c, u);
#pragma unroll
  for (int i = 0; i < kRowPack; ++i) u[i] = w ? u[i] + offset : R{1};
}

// How a result is written once more, rounded: in packs of bf16 where the others are in packs.
template <class X>
using RoundedForm = std::conditional_t<(X::kUnroll > 1), Packed<__nv_bfloat16>, X>;

// in_row_form where the rounded tensors have packs too.
template <class F>
void in_rounded_form(const Tensor& real, std::initializer_list<const Tensor*> rounded,
                     std::initializer_list<const Tensor*> x, std::initializer_list<const Tensor*> y,
                     std::initializer_list<const Tensor*> w, const F& run) {
  if (real.dtype() == DType::f64 || packed<__nv_bfloat16>(rounded, kRowPack)) {
    in_row_form(real, x, y, w, run);
  } else {
    run(Loose<float>{}, Loose<float>{}, Loose<float>{});
  }
}

}  // namespace qkv::kernels::cuda

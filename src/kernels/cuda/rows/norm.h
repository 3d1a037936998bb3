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

}  // namespace qkv::kernels::cuda

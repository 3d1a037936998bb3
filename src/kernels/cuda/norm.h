// layer_norm and rms_norm of one row, and what they share with their gradients. rms_norm is layer_norm with a mean of zero.
#pragma once

#include <optional>

#include "kernels/cuda/row_parts.h"

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

template <class X, class Y, class W>
struct Norm {
  using R = typename X::Real;
  Y y;
  X x;
  W w, b;
  R *mean, *rstd;  // mean is absent for rms_norm
  R eps, offset;
  int64_t rows, width;
};

// One row by T threads. walk(x, f) calls f(first column, numbers of x, numbers of w) for each pack, put(first column,
// numbers) gets the results. Mean and rstd are written where `keeps` says so.
template <int T, class X, class Y, class W, class Walk, class Put>
__device__ __forceinline__ void norm_row(const Norm<X, Y, W>& n, int64_t r, bool keeps, const Walk& walk,
                                         const Put& put) {
  using R = typename X::Real;
  const RowPart<X, T> x(n.x, r, n.width);
  R mean = 0, squares = 0;
  if (n.mean != nullptr) {
    x.numbers([&](R v) { mean += v; });
    mean = row_sum<T>(mean) / static_cast<R>(n.width);
  }
  x.numbers([&](R v) { squares += (v - mean) * (v - mean); });
  const R rstd = 1 / sqrt(row_sum<T>(squares) / static_cast<R>(n.width) + n.eps);
  walk(x, [&](int64_t c, const R(&v)[kRowPack], const R(&w)[kRowPack]) {
    R shift[kRowPack] = {}, out[kRowPack];
    if (n.b) n.b.load(0, c, shift);
#pragma unroll
    for (int i = 0; i < kRowPack; ++i) out[i] = (v[i] - mean) * rstd * (n.w ? w[i] + n.offset : R{1}) + shift[i];
    put(c, out);
  });
  if (keeps && threadIdx.x % T == 0) {
    if (n.mean != nullptr) n.mean[r] = mean;
    n.rstd[r] = rstd;
  }
}

// In a recording, the norm of one row waits for the product that reads it: every block of that makes it again, which is
// sooner than a kernel in between. Whatever else is launched next starts it after all.
struct HeldNorm {
  using Form = Norm<Packed<float>, Packed<__nv_bfloat16>, Packed<float>>;
  static constexpr int64_t kLeast = kWarpColumns + 1, kMost = kRowBlock * kRowPack * kKept;  // columns

  Form norm;
  Tensor x, y;
};
// The one that waits, if it gives y. It does not wait any longer.
std::optional<HeldNorm> take_held_norm(const Tensor& y);
void launch_held(const Exec& exec, const HeldNorm& held);

}  // namespace qkv::kernels::cuda

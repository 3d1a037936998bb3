// layer_norm and rms_norm; formulas in ops/layer_norm.cpp and ops/rms_norm.cpp. rms_norm is layer_norm with a mean of
// zero.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/rows/norm.h"

namespace qkv::kernels::cuda {
namespace {

template <class X, class Y, class W>
struct Norm {
  using R = typename X::Real;
  Y y;
  X x;
  W w, b;
  R *mean, *rstd;  // mean is absent for rms_norm
  R eps, offset;
  int64_t rows, width;
  RoundedForm<X> rounded;  // or absent
};

// One row by T threads. walk(x, f) calls f(first column, numbers of x, numbers of w) for each pack. Rounded once more with
// kRounded alone: where rows are few, a question less for every pack is 2 % of a pass.
template <int T, bool kRounded, class X, class Y, class W, class Walk>
__device__ __forceinline__ void norm_row(const Norm<X, Y, W>& n, int64_t r, const Walk& walk) {
  using R = typename X::Real;
  const RowPart<X, T> x(n.x, r, n.width);
  R mean = 0, squares = 0;
  if (n.mean != nullptr) {
    x.numbers([&](R v) { mean += v; });
    mean = row_sum<T>(mean) / static_cast<R>(n.width);
  }
  x.numbers([&](R v) { squares += (v - mean) * (v - mean); });
  const R rstd = rsqrt(row_sum<T>(squares) / static_cast<R>(n.width) + n.eps);
  walk(x, [&](int64_t c, const R(&v)[kRowPack], const R(&w)[kRowPack]) {
    R shift[kRowPack] = {}, out[kRowPack];
    if (n.b) n.b.load(0, c, shift);
#pragma unroll
    for (int i = 0; i < kRowPack; ++i) out[i] = (v[i] - mean) * rstd * (n.w ? w[i] + n.offset : R{1}) + shift[i];
    n.y.store(r, c, out);
    if (kRounded && n.rounded) n.rounded.store(r, c, out);
  });
  if (threadIdx.x % T == 0) {
    if (n.mean != nullptr) n.mean[r] = mean;
    n.rstd[r] = rstd;
  }
}

// Decoding: weights are read while the kernel before still runs.
template <class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock) norm_few_rows(const __grid_constant__ Norm<X, Y, W> n) {
  let_next_start();
  const RowPart<W, kRowBlock> w(n.w, 0, n.width, static_cast<bool>(n.w));
  wait_for_last();
  norm_row<kRowBlock, false>(n, blockIdx.x, [&](const auto& x, const auto& f) { x.each_with(w, f); });
}

template <int T, class X, class Y, class W>
void norm_by(const Exec& exec, const Norm<X, Y, W>& n) {
  using R = typename X::Real;
  constexpr bool kCommon = std::is_same_v<X, Packed<float>> && std::is_same_v<Y, Packed<__nv_bfloat16>>;
  if constexpr (T == kRowBlock && kCommon) {
    constexpr int64_t kFewRows = 64;
    if (n.rows > 0 && n.rows <= kFewRows && !n.rounded) {
      return launch(exec, norm_few_rows<X, Y, W>, static_cast<unsigned>(n.rows), kRowBlock, 0, n);
    }
  }
  each_row_by<T>(exec, n.rows, [=] __device__(int64_t r) {
    norm_row<T, true>(n, r, [&](const auto& x, const auto& f) {
      x.each([&](int64_t c, const R(&v)[kRowPack]) {
        R w[kRowPack] = {};
        if (n.w) n.w.load(0, c, w);
        f(c, v, w);
      });
    });
  });
}

// Mean and bias are absent for rms_norm.
template <class Args>
void run_norm(const Exec& exec, const Args& a, const Tensor& mean, const Tensor& rstd, const Tensor& b,
              const Tensor& rounded) {
  const auto run = [&]<class X, class Y, class W>(X, Y, W) {
    using R = typename X::Real;
    const Norm<X, Y, W> n{Y(a.y),
                          X(a.x),
                          W(a.w),
                          W(b),
                          numbers_of<R>(mean),
                          numbers_of<R>(rstd),
                          static_cast<R>(a.eps),
                          static_cast<R>(a.offset),
                          a.x.rows(),
                          a.x.cols(),
                          RoundedForm<X>(rounded)};
    by_width(n.width, [&](auto t) { norm_by<decltype(t)::value>(exec, n); });
  };
  in_rounded_form(rstd, {&rounded}, {&a.x}, {&a.y}, {&a.w, &b}, run);
}
}  // namespace

void layer_norm(const Exec& exec, const LayerNormArgs& a) noexcept {
  run_norm(exec, a, a.mean, a.rstd, a.b, a.rounded);
}
void rms_norm(const Exec& exec, const RmsNormArgs& a) noexcept {
  run_norm(exec, a, {}, a.r, {}, {});
}

}  // namespace qkv::kernels::cuda

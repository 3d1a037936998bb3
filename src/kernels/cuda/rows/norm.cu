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

// One row. sum(f) adds up f(number of x); walk(f) calls f(first column, numbers of x, numbers of w) for each pack. One thread
// `keeps` mean and rstd. Rounded once more with kRounded alone: where rows are few, a question less for every pack is 2 % of a pass.
template <bool kRounded, class X, class Y, class W, class Sum, class Walk>
__device__ __forceinline__ void norm_row(const Norm<X, Y, W>& n, int64_t r, bool keeps, const Sum& sum,
                                         const Walk& walk) {
  using R = typename X::Real;
  const R mean = n.mean != nullptr ? sum([](R v) { return v; }) / static_cast<R>(n.width) : R{0};
  const R rstd = rsqrt(sum([=](R v) { return (v - mean) * (v - mean); }) / static_cast<R>(n.width) + n.eps);
  walk([&](int64_t c, const R(&v)[kRowPack], const R(&w)[kRowPack]) {
    R shift[kRowPack] = {}, out[kRowPack];
    if (n.b) n.b.load(0, c, shift);
#pragma unroll
    for (int i = 0; i < kRowPack; ++i) out[i] = (v[i] - mean) * rstd * (n.w ? w[i] + n.offset : R{1}) + shift[i];
    n.y.store(r, c, out);
    if (kRounded && n.rounded) n.rounded.store(r, c, out);
  });
  if (!keeps) return;
  if (n.mean != nullptr) n.mean[r] = mean;
  n.rstd[r] = rstd;
}
// By T threads. walk(x, f) calls f with the packs of x and of w.
template <int T, bool kRounded, class X, class Y, class W, class Walk>
__device__ __forceinline__ void norm_row_by(const Norm<X, Y, W>& n, int64_t r, const Walk& walk) {
  using R = typename X::Real;
  const RowPart<X, T> x(n.x, r, n.width);
  const auto sum = [&](const auto& f) {
    R total = 0;
    x.numbers([&](R v) { total += f(v); });
    return row_sum<T>(total);
  };
  norm_row<kRounded>(n, r, threadIdx.x % T == 0, sum, [&](const auto& f) { walk(x, f); });
}

// Decoding: weights are read while the kernel before still runs.
template <class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock) norm_few_rows(const __grid_constant__ Norm<X, Y, W> n) {
  let_next_start();
  const RowPart<W, kRowBlock> w(n.w, 0, n.width, static_cast<bool>(n.w));
  wait_for_last();
  norm_row_by<kRowBlock, false>(n, blockIdx.x, [&](const auto& x, const auto& f) { x.each_with(w, f); });
}

// Many rows of 1025 to 2048 columns: a warp takes one alone, and waits for no other. A lane has the packs of four threads, one of
// each warp, and keeps their sums apart.
constexpr int64_t kManyRows = 1024, kMostOfWarp = 2048;
template <class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock) norm_many_rows(const __grid_constant__ Norm<X, Y, W> n) {
  using R = typename X::Real;
  constexpr int kWarpsOfRow = kRowBlock / 32, kPacks = kMostOfWarp / (32 * kRowPack);
  const int lane = static_cast<int>(threadIdx.x) % 32, width = static_cast<int>(n.width);
  const auto r = static_cast<int64_t>(blockIdx.x) * kWarpsOfRow + threadIdx.x / 32;
  wait_for_last();
  if (r >= n.rows) return;
  const X row = n.x.row(r);
  typename X::template Raw<kRowPack> packs[kPacks];
  const auto each = [&](const auto& f) {
#pragma unroll
    for (int s = 0; s < kPacks; ++s) {
      const int c = kRowPack * (lane + 32 * s);
      if (c < width) f(s, c);
    }
  };
  each([&](int s, int c) { packs[s] = row.template fetch<kRowPack>(0, c); });
  const auto sum = [&](const auto& f) {
    R parts[kWarpsOfRow] = {};
    each([&](int s, int) {
      R v[kRowPack];
      row.numbers(packs[s], v);
#pragma unroll
      for (const R x : v) parts[s % kWarpsOfRow] += f(x);
    });
#pragma unroll
    for (R& part : parts) part = warp_sum(part);
    R total = parts[0];
#pragma unroll
    for (int w = 1; w < kWarpsOfRow; ++w) total += parts[w];
    return total;
  };
  norm_row<true>(n, r, lane == 0, sum, [&](const auto& f) {
    each([&](int s, int c) {
      R v[kRowPack], w[kRowPack] = {};
      row.numbers(packs[s], v);
      if (n.w) n.w.load(0, c, w);
      f(c, v, w);
    });
  });
}

template <int T, class X, class Y, class W>
void norm_by(const Exec& exec, const Norm<X, Y, W>& n) {
  using R = typename X::Real;
  constexpr bool kCommon = std::is_same_v<X, Packed<float>> && std::is_same_v<Y, Packed<__nv_bfloat16>>;
  if constexpr (T == kRowBlock && kCommon) {
    constexpr int64_t kFewRows = 64;
    if (n.rows > 0 && n.rows <= kFewRows && !n.rounded) {
      return launch<Early::recorded>(exec, norm_few_rows<X, Y, W>, static_cast<unsigned>(n.rows), kRowBlock, 0, n);
    }
  }
  if constexpr (T == kRowBlock && X::kUnroll > 1) {
    if (n.rows >= kManyRows && n.width <= kMostOfWarp) {
      constexpr int64_t kEach = kRowBlock / 32;
      const auto grid = static_cast<unsigned>((n.rows + kEach - 1) / kEach);
      return launch(exec, norm_many_rows<X, Y, W>, grid, kRowBlock, 0, n);
    }
  }
  each_row_by<T>(exec, n.rows, [=] __device__(int64_t r) {
    norm_row_by<T, true>(n, r, [&](const auto& x, const auto& f) {
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

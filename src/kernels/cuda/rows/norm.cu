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
  bool backwards = false;  // over the rows
};

// Row r to be written: where it begins is found once.
template <class A>
struct RowTo {
  A rows;
  int64_t r;
  __device__ RowTo(const A& a, int64_t row) : rows(a), r(row) {
    if constexpr (A::kUnroll > 1) {
      rows = a.row(row);
      r = 0;
    }
  }
  template <int N>
  __device__ void store(int64_t c, const typename A::Real (&v)[N]) const {
    rows.store(r, c, v);
  }
};

// One row. sum(f) adds up f(number of x); walk(f) calls f(first column, numbers of x, numbers of w) for each pack. One thread
// `keeps` mean and rstd.
template <class X, class Y, class W, class Sum, class Walk>
__device__ __forceinline__ void norm_row(const Norm<X, Y, W>& n, int64_t r, bool keeps, const Sum& sum,
                                         const Walk& walk) {
  using R = typename X::Real;
  const R mean = n.mean != nullptr ? sum([](R v) { return v; }) / static_cast<R>(n.width) : R{0};
  const R rstd = rsqrt(sum([=](R v) { return (v - mean) * (v - mean); }) / static_cast<R>(n.width) + n.eps);
  const RowTo y(n.y, r);
  const RowTo rounded(n.rounded, r);
  walk([&](int64_t c, const R(&v)[kRowPack], const R(&w)[kRowPack]) {
    R shift[kRowPack] = {}, out[kRowPack];
    if (n.b) n.b.load(0, c, shift);
#pragma unroll
    for (int i = 0; i < kRowPack; ++i) out[i] = (v[i] - mean) * rstd * (n.w ? w[i] + n.offset : R{1}) + shift[i];
    y.store(c, out);
    if (n.rounded) rounded.store(c, out);
  });
  if (!keeps) return;
  if (n.mean != nullptr) n.mean[r] = mean;
  n.rstd[r] = rstd;
}
// By T threads.
template <int T, class X, class Y, class W>
__device__ __forceinline__ void norm_row_by(const Norm<X, Y, W>& n, int64_t r) {
  using R = typename X::Real;
  const RowPart<X, T> x(n.x, r, n.width);
  const auto sum = [&](const auto& f) {
    R total = 0;
    x.numbers([&](R v) { total += f(v); });
    return row_sum<T>(total);
  };
  norm_row(n, r, threadIdx.x % T == 0, sum, [&](const auto& f) {
    x.each([&](int64_t c, const R(&v)[kRowPack]) {
      R w[kRowPack] = {};
      if (n.w) n.w.load(0, c, w);
      f(c, v, w);
    });
  });
}

// Decoding: weights are read while the kernel before still runs. A block passes through its code once, and what it waits for is
// mostly that code: there is little of it. A thread has kPacks packs; where there are fewer, zeros take their place and add nothing.
template <int kPacks, class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock) norm_few_rows(const __grid_constant__ Norm<X, Y, W> n) {
  let_next_start();
  const int64_t r = blockIdx.x;
  const int width = static_cast<int>(n.width), first = kRowPack * static_cast<int>(threadIdx.x);
  const auto here = [&](int s) { return first + s * kRowBlock * kRowPack < width; };
  const auto read = [&](bool there, const std::byte* row, float4(&to)[kPacks], float else_all) {
#pragma unroll
    for (int s = 0; s < kPacks; ++s) {
      to[s] = make_float4(else_all, else_all, else_all, else_all);
      if (there && here(s)) to[s] = __ldcg(reinterpret_cast<const float4*>(row) + threadIdx.x + s * kRowBlock);
    }
  };
  float4 v[kPacks], w[kPacks], b[kPacks];
  read(static_cast<bool>(n.w), n.w.address(0, 0), w, 1);
  read(static_cast<bool>(n.b), n.b.address(0, 0), b, 0);
  const float offset = n.w ? n.offset : 0;
  wait_for_last();
  read(true, n.x.address(r, 0), v, 0);
  const auto sum = [&](const auto& f) {
    float total = 0;
#pragma unroll
    for (int s = 0; s < kPacks; ++s) {
      for (const float x : {v[s].x, v[s].y, v[s].z, v[s].w}) total += here(s) ? f(x) : 0;
    }
    return row_sum<kRowBlock>(total);
  };
  const auto count = static_cast<float>(width);
  const float mean = n.mean != nullptr ? sum([](float x) { return x; }) / count : 0;
  const float rstd = rsqrtf(sum([&](float x) { return (x - mean) * (x - mean); }) / count + n.eps);
  const Y y = n.y.row(r);
#pragma unroll
  for (int s = 0; s < kPacks; ++s) {
    const auto of = [&](float x, float w, float b) { return (x - mean) * rstd * (w + offset) + b; };
    const float out[kRowPack] = {of(v[s].x, w[s].x, b[s].x), of(v[s].y, w[s].y, b[s].y), of(v[s].z, w[s].z, b[s].z),
                                 of(v[s].w, w[s].w, b[s].w)};
    if (here(s)) y.store(0, first + s * kRowBlock * kRowPack, out);
  }
  if (threadIdx.x != 0) return;
  if (n.mean != nullptr) n.mean[r] = mean;
  n.rstd[r] = rstd;
}

// A warp takes a row alone, and waits for no other: rows of 257 to 1024 columns, and, where they are many, of up to 2048. There a
// lane has the packs of four threads, one of each warp that few rows have, and keeps their sums apart.
constexpr int64_t kManyRows = 1024, kMostOfWarp = 2048;
template <int kParts, int kPacks, class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock)
    norm_rows_of_warps(Recorded recorded, const __grid_constant__ Norm<X, Y, W> n) {
  using R = typename X::Real;
  const int lane = static_cast<int>(threadIdx.x) % 32, width = static_cast<int>(n.width);
  const auto block = static_cast<int64_t>(n.backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  const int64_t r = block * (kRowBlock / 32) + threadIdx.x / 32;
  let_next_start(recorded);
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
    R parts[kParts] = {};
    each([&](int s, int) {
      R v[kRowPack];
      row.numbers(packs[s], v);
#pragma unroll
      for (const R x : v) parts[s % kParts] += f(x);
    });
#pragma unroll
    for (R& part : parts) part = warp_sum(part);
    R total = parts[0];
#pragma unroll
    for (int w = 1; w < kParts; ++w) total += parts[w];
    return total;
  };
  norm_row(n, r, lane == 0, sum, [&](const auto& f) {
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
  constexpr bool kCommon = std::is_same_v<X, Packed<float>> && std::is_same_v<Y, Packed<__nv_bfloat16>>;
  if constexpr (T == kRowBlock && kCommon) {
    constexpr int64_t kFewRows = 64;
    if (n.rows > 0 && n.rows <= kFewRows && !n.rounded) {
      const auto grid = static_cast<unsigned>(n.rows);
      if (n.width <= 2048) return launch<Early::recorded>(exec, norm_few_rows<4, X, Y, W>, grid, kRowBlock, 0, n);
      if (n.width <= 4096) return launch<Early::recorded>(exec, norm_few_rows<8, X, Y, W>, grid, kRowBlock, 0, n);
      if (n.width <= 8192) return launch<Early::recorded>(exec, norm_few_rows<16, X, Y, W>, grid, kRowBlock, 0, n);
    }
  }
  constexpr bool kPacked = X::kUnroll > 1;
  [[maybe_unused]] const auto by_warps = [&](auto packs) {
    if constexpr (kPacked && T >= 32) {
      constexpr int kPacks = X::kF32 || T > 32 ? decltype(packs)::value : kKept;  // rows of bf16 are rare
      constexpr int64_t kEach = kRowBlock / 32;
      const auto grid = static_cast<unsigned>((n.rows + kEach - 1) / kEach);
      if (grid > 0) launch(exec, norm_rows_of_warps<T / 32, kPacks, X, Y, W>, grid, kRowBlock, 0, n);
    }
  };
  if constexpr (kPacked && T == 32) {
    const auto fits = [&](int packs) { return n.width <= int64_t{32} * kRowPack * packs; };
    if (fits(4)) return by_warps(Count<4>{});
    if (fits(6)) return by_warps(Count<6>{});
    by_warps(Count<kKept>{});
  } else {
    if constexpr (kPacked && T == kRowBlock) {
      if (n.rows >= kManyRows && n.width <= kMostOfWarp) return by_warps(Count<kMostOfWarp / (32 * kRowPack)>{});
    }
    each_row_by<T>(exec, n.rows, [=] __device__(int64_t r) { norm_row_by<T>(n, r); });
  }
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
                          RoundedForm<X>(rounded),
                          goes_back()};
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

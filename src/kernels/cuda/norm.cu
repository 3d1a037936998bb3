// layer_norm and rms_norm; formulas in ops/layer_norm.cpp and ops/rms_norm.cpp. rms_norm is layer_norm with a mean of
// zero.
#include <cmath>
#include <tuple>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/row_parts.h"

namespace qkv::kernels::cuda {
namespace {

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

// One row by T threads. walk(x, f) calls f(first column, numbers of x, numbers of w) for each pack.
template <int T, class X, class Y, class W, class Walk>
__device__ __forceinline__ void norm_row(const Norm<X, Y, W>& n, int64_t r, const Walk& walk) {
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
    n.y.store(r, c, out);
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
  norm_row<kRowBlock>(n, blockIdx.x, [&](const auto& x, const auto& f) { x.each_with(w, f); });
}

template <int T, class X, class Y, class W>
void norm_by(const Exec& exec, const Norm<X, Y, W>& n) {
  using R = typename X::Real;
  constexpr bool kCommon = std::is_same_v<X, Packed<float>> && std::is_same_v<Y, Packed<__nv_bfloat16>>;
  if constexpr (T == kRowBlock && kCommon) {
    constexpr int64_t kFewRows = 64;
    if (n.rows > 0 && n.rows <= kFewRows) {
      return launch(exec, norm_few_rows<X, Y, W>, static_cast<unsigned>(n.rows), kRowBlock, 0, n);
    }
  }
  each_row_by<T>(exec, n.rows, [=] __device__(int64_t r) {
    norm_row<T>(n, r, [&](const auto& x, const auto& f) {
      x.each([&](int64_t c, const R(&v)[kRowPack]) {
        R w[kRowPack] = {};
        if (n.w) n.w.load(0, c, w);
        f(c, v, w);
      });
    });
  });
}

// Backward, one pass: a block takes a piece of the rows, some at once, writes their dx, and adds up dw and db in shared
// memory; then those at once in order, then the pieces in order.
template <class X, class Y, class W>
struct NormBackward {
  using R = typename X::Real;
  X dx, x;
  Y dy;
  W w;
  bool add;
  const R *mean, *rstd;  // mean is absent for rms_norm
  R offset;
  int64_t rows, width, rows_each;
  R* partial;  // [pieces, 2, width] sums of dw and db, or absent
};

template <int T, class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock, 4) norm_backward_pieces(const __grid_constant__ NormBackward<X, Y, W> n) {
  using R = typename X::Real;
  struct alignas(16) Four {
    R v[kRowPack];
  };
  extern __shared__ __align__(16) unsigned char raw[];  // [rows at once][2][width, whole packs]
  const int64_t padded = (n.width + kRowPack - 1) / kRowPack * kRowPack;
  R* const dw = reinterpret_cast<R*>(raw) + threadIdx.x / T * 2 * padded;
  R* const db = dw + padded;
  const bool sums = n.partial != nullptr;
  for (int64_t c = threadIdx.x % T; sums && c < 2 * padded; c += T) dw[c] = 0;
  __syncthreads();
  let_next_start();
  wait_for_last();
  const int64_t piece = blockIdx.x, end = min((piece + 1) * n.rows_each, n.rows);
  for (int64_t r = piece * n.rows_each + threadIdx.x / T; r < end; r += kRowBlock / T) {
    const RowPart<X, T> x(n.x, r, n.width), old(n.dx, r, n.width, n.add);
    const RowPart<Y, T> dy(n.dy, r, n.width);
    const R mean = n.mean != nullptr ? n.mean[r] : R{0}, rstd = n.rstd[r];
    R mean_g = 0, mean_gx = 0;  // of g and g xhat, g = dy (w + offset)
    x.each_with(dy, [&](int64_t c, const R(&of_x)[kRowPack], const R(&of_dy)[kRowPack]) {
      R u[kRowPack], xhat[kRowPack];
      load_factors(n.w, c, n.offset, u);
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        xhat[i] = (of_x[i] - mean) * rstd;
        mean_g += of_dy[i] * u[i];
        mean_gx += of_dy[i] * u[i] * xhat[i];
      }
      if (!sums) return;
      Four &to_w = *reinterpret_cast<Four*>(dw + c), &to_b = *reinterpret_cast<Four*>(db + c);
      Four of_w = to_w, of_b = to_b;
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        of_w.v[i] += of_dy[i] * xhat[i];
        of_b.v[i] += of_dy[i];
      }
      to_w = of_w;
      to_b = of_b;
    });
    if (!n.dx) continue;
    mean_g = n.mean != nullptr ? row_sum<T>(mean_g) / static_cast<R>(n.width) : R{0};
    mean_gx = row_sum<T>(mean_gx) / static_cast<R>(n.width);
    x.each_with(dy, old, [&](int64_t c, const R(&of_x)[kRowPack], const R(&of_dy)[kRowPack], auto load_old) {
      R u[kRowPack], out[kRowPack] = {};
      load_factors(n.w, c, n.offset, u);
      if (n.add) load_old(out);
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        const R d = rstd * (of_dy[i] * u[i] - mean_g - (of_x[i] - mean) * rstd * mean_gx);
        out[i] = n.add ? out[i] + d : d;
      }
      n.dx.store(r, c, out);
    });
  }
  if (!sums) return;
  __syncthreads();
  for (int64_t c = threadIdx.x; c < 2 * n.width; c += kRowBlock) {
    const R* from = reinterpret_cast<const R*>(raw) + (c < n.width ? c : padded + c - n.width);
    R sum = from[0];
    for (int64_t k = 1; k < kRowBlock / T; ++k) sum += from[k * 2 * padded];
    n.partial[piece * 2 * n.width + c] = sum;
  }
}

constexpr int64_t kMostColumns = 8192, kMostPieces = 640;
constexpr int kMostShared = 2 * kMostColumns * sizeof(double);

template <class X, class Y, class W>
int64_t run_pieces(const Exec& exec, NormBackward<X, Y, W>& n) {
  int64_t pieces = 0;
  by_width(n.width, [&](auto t) {
    constexpr int kT = decltype(t)::value;
    constexpr int64_t kAtOnce = kRowBlock / kT;
    n.rows_each = (n.rows + kMostPieces * kAtOnce - 1) / (kMostPieces * kAtOnce) * kAtOnce;
    pieces = n.rows == 0 ? 0 : (n.rows + n.rows_each - 1) / n.rows_each;
    if (pieces == 0) return;
    const int64_t padded = (n.width + kRowPack - 1) / kRowPack * kRowPack;
    const size_t bytes = n.partial != nullptr ? static_cast<size_t>(kAtOnce * 2 * padded) * sizeof(*n.partial) : 0;
    static const cudaError_t prepared = cudaFuncSetAttribute(norm_backward_pieces<kT, X, Y, W>,
                                                             cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
    std::ignore = prepared;
    launch(exec, norm_backward_pieces<kT, X, Y, W>, static_cast<unsigned>(pieces), kRowBlock, bytes, n);
  });
  return pieces;
}

template <class X, class Y, class W>
void norm_backward_in(const Exec& exec, NormBackward<X, Y, W> n, const Grad& to_w, const Grad& to_b, const Tensor& dy,
                      const Tensor& x) {
  using R = typename X::Real;
  const GradView dw(to_w), db(to_b);
  const bool sums = to_w || to_b;
  const int64_t all = n.width;
  n.partial = sums && all <= kMostColumns ? reinterpret_cast<R*>(exec.scratch.data()) : nullptr;
  int64_t pieces = run_pieces(exec, n);
  // Sums of more columns than fit into shared memory: passes of their own.
  for (int64_t first = 0; sums && first < all; first += kMostColumns) {
    const int64_t width = std::min(kMostColumns, all - first);
    if (all > kMostColumns) {
      n.dx = X();
      n.x = X(x.slice(-1, first, width));
      n.dy = Y(dy.slice(-1, first, width));
      n.width = width;
      n.partial = reinterpret_cast<R*>(exec.scratch.data());
      pieces = run_pieces(exec, n);
    }
    add_pieces(exec, n.partial, pieces, 2 * width, 2 * width, [=] __device__(int64_t c, R sum) {
      if (c < width) {
        if (dw) dw.put(first + c, sum);
      } else if (db) {
        db.put(first + c - width, sum);
      }
    });
  }
}

// Mean and bias are absent for rms_norm.
template <class Args>
void run_norm(const Exec& exec, const Args& a, const Tensor& mean, const Tensor& rstd, const Tensor& b) {
  in_row_form(rstd, {&a.x}, {&a.y}, {&a.w, &b}, [&]<class X, class Y, class W>(X, Y, W) {
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
                          a.x.cols()};
    by_width(n.width, [&](auto t) { norm_by<decltype(t)::value>(exec, n); });
  });
}
template <class Args>
void run_norm_backward(const Exec& exec, const Args& a, const Tensor& mean, const Tensor& rstd, const Grad& db) {
  in_row_form(rstd, {&a.x, &a.dx.tensor}, {&a.dy}, {&a.w}, [&]<class X, class Y, class W>(X, Y, W) {
    using R = typename X::Real;
    const NormBackward<X, Y, W> n{
        X(a.dx.tensor),           X(a.x),     Y(a.dy),   W(a.w), a.dx.add, numbers_of<R>(mean), numbers_of<R>(rstd),
        static_cast<R>(a.offset), a.x.rows(), a.x.cols()};
    norm_backward_in(exec, n, a.dw, db, a.dy, a.x);
  });
}

}  // namespace

void layer_norm(const Exec& exec, const LayerNormArgs& a) noexcept {
  run_norm(exec, a, a.mean, a.rstd, a.b);
}
void layer_norm_backward(const Exec& exec, const LayerNormBackwardArgs& a) noexcept {
  run_norm_backward(exec, a, a.mean, a.rstd, a.db);
}
void rms_norm(const Exec& exec, const RmsNormArgs& a) noexcept {
  run_norm(exec, a, {}, a.r, {});
}
void rms_norm_backward(const Exec& exec, const RmsNormBackwardArgs& a) noexcept {
  run_norm_backward(exec, a, {}, a.r, {});
}

}  // namespace qkv::kernels::cuda

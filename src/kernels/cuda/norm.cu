// layer_norm and rms_norm; formulas in ops/layer_norm.cpp and ops/rms_norm.cpp. A warp or a block per row, as its width
// says. rms_norm is layer_norm with a mean of zero.
#include <cmath>
#include <tuple>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/packed.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
R* numbers_of(const Tensor& t) {
  return t.defined() ? t.as<R>() : nullptr;
}

// The factors of some columns: w + offset, or 1.
template <class A, class R>
__device__ void load_factors(const A& w, int64_t c, R offset, R (&u)[kRowPack]) {
  if (w) w.load(0, c, u);
#pragma unroll
  for (int i = 0; i < kRowPack; ++i) u[i] = w ? u[i] + offset : R{1};
}

template <class A>
struct Norm {
  using R = typename A::Real;
  A y, x, w, b;
  R *mean, *rstd;  // mean is absent for rms_norm
  R eps, offset;
  int64_t rows, width;
};

template <class A, int T>
void norm_by(const Exec& exec, const Norm<A>& n) {
  using R = typename A::Real;
  each_row_by<T>(exec, n.rows, [=] __device__(int64_t r) {
    const RowPart<A, T> x(n.x, r, n.width);
    R mean = 0, squares = 0;
    if (n.mean != nullptr) {
      x.numbers([&](R v) { mean += v; });
      mean = row_sum<T>(mean) / static_cast<R>(n.width);
    }
    x.numbers([&](R v) { squares += (v - mean) * (v - mean); });
    const R rstd = 1 / sqrt(row_sum<T>(squares) / static_cast<R>(n.width) + n.eps);
    x.each([&](int64_t c, const R(&v)[kRowPack]) {
      R u[kRowPack], shift[kRowPack] = {}, out[kRowPack];
      load_factors(n.w, c, n.offset, u);
      if (n.b) n.b.load(0, c, shift);
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) out[i] = (v[i] - mean) * rstd * u[i] + shift[i];
      n.y.store(r, c, out);
    });
    if (threadIdx.x % T == 0) {
      if (n.mean != nullptr) n.mean[r] = mean;
      n.rstd[r] = rstd;
    }
  });
}

template <class A>
void norm_in(const Exec& exec, const Norm<A>& n) {
  by_width(n.width, [&](auto t) { norm_by<A, decltype(t)::value>(exec, n); });
}

// Backward, one pass: a block takes a piece of the rows, writes their dx, and adds up dw and db in shared memory. A warp
// has every eighth row of the piece, or the block each; then the warps in order, then the pieces.
template <class A>
struct NormBackward {
  using R = typename A::Real;
  A dx, dy, x, w;
  bool add;
  const R *mean, *rstd;  // mean is absent for rms_norm
  R offset;
  int64_t rows, width, rows_each;
  R* partial;  // [pieces, 2, width] sums of dw and db, or absent
};

template <class A, int T>
__global__ void __launch_bounds__(kThreads, 2) norm_backward_pieces(const __grid_constant__ NormBackward<A> n) {
  using R = typename A::Real;
  using Part = RowPart<A, T>;
  extern __shared__ __align__(16) unsigned char raw[];  // [rows at once][2][width, whole packs]
  const int64_t padded = (n.width + kRowPack - 1) / kRowPack * kRowPack;
  R* const dw = reinterpret_cast<R*>(raw) + threadIdx.x / T * 2 * padded;
  R* const db = dw + padded;
  const bool sums = n.partial != nullptr;
  for (int64_t c = threadIdx.x % T; sums && c < 2 * padded; c += T) dw[c] = 0;
  __syncthreads();
  struct alignas(16) Four {
    R v[kRowPack];
  };
  const int64_t piece = blockIdx.x, end = min((piece + 1) * n.rows_each, n.rows);
  for (int64_t r = piece * n.rows_each + threadIdx.x / T; r < end; r += kThreads / T) {
    const Part x(n.x, r, n.width), dy(n.dy, r, n.width);
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
    x.each_with(dy, [&](int64_t c, const R(&of_x)[kRowPack], const R(&of_dy)[kRowPack]) {
      R u[kRowPack], out[kRowPack];
      load_factors(n.w, c, n.offset, u);
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        out[i] = rstd * (of_dy[i] * u[i] - mean_g - (of_x[i] - mean) * rstd * mean_gx);
      }
      n.dx.put(r, c, out, n.add);
    });
  }
  if (!sums) return;
  __syncthreads();
  for (int64_t c = threadIdx.x; c < 2 * n.width; c += kThreads) {
    const R* from = reinterpret_cast<const R*>(raw) + (c < n.width ? c : padded + c - n.width);
    R sum = from[0];
    for (int64_t k = 1; k < kThreads / T; ++k) sum += from[k * 2 * padded];
    n.partial[piece * 2 * n.width + c] = sum;
  }
}

constexpr int64_t kMostColumns = 8192, kMostPieces = 512;

constexpr int kMostShared = 2 * 8192 * sizeof(double);

template <class A>
int64_t run_pieces(const Exec& exec, NormBackward<A>& n) {
  n.rows_each = std::max<int64_t>((n.rows + kMostPieces - 1) / kMostPieces, 1);
  n.rows_each = (n.rows_each + kWarps - 1) / kWarps * kWarps;
  const int64_t pieces = (n.rows + n.rows_each - 1) / n.rows_each;
  if (pieces > 0) {
    by_width(n.width, [&](auto t) {
      constexpr int kT = decltype(t)::value;
      const int64_t padded = (n.width + kRowPack - 1) / kRowPack * kRowPack, numbers = kThreads / kT * 2 * padded;
      const size_t bytes = n.partial != nullptr ? static_cast<size_t>(numbers) * sizeof(typename A::Real) : 0;
      static const cudaError_t prepared =
          cudaFuncSetAttribute(norm_backward_pieces<A, kT>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
      std::ignore = prepared;
      norm_backward_pieces<A, kT><<<static_cast<unsigned>(pieces), kThreads, bytes, stream_of(exec)>>>(n);
      note_launch();
    });
  }
  return pieces;
}

template <class A>
void norm_backward_in(const Exec& exec, NormBackward<A> n, const Grad& to_w, const Grad& to_b, const Tensor& dy,
                      const Tensor& x) {
  using R = typename A::Real;
  const GradView dw(to_w), db(to_b);
  const bool sums = to_w || to_b;
  const int64_t all = n.width;
  n.partial = sums && all <= kMostColumns ? reinterpret_cast<R*>(exec.scratch.data()) : nullptr;
  int64_t pieces = run_pieces(exec, n);
  // Sums of more columns than fit into shared memory: passes of their own.
  for (int64_t first = 0; sums && first < all; first += kMostColumns) {
    const int64_t width = std::min(kMostColumns, all - first);
    if (all > kMostColumns) {
      n.dx = A();
      n.x = A(x.slice(-1, first, width));
      n.dy = A(dy.slice(-1, first, width));
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

template <class A>
void layer_norm_in(const Exec& exec, const LayerNormArgs& a) {
  using R = typename A::Real;
  norm_in<A>(exec, {A(a.y), A(a.x), A(a.w), A(a.b), numbers_of<R>(a.mean), numbers_of<R>(a.rstd), static_cast<R>(a.eps),
                    static_cast<R>(a.offset), a.x.rows(), a.x.cols()});
}
template <class A>
void rms_norm_in(const Exec& exec, const RmsNormArgs& a) {
  using R = typename A::Real;
  norm_in<A>(exec, {A(a.y), A(a.x), A(a.w), A(), nullptr, numbers_of<R>(a.r), static_cast<R>(a.eps),
                    static_cast<R>(a.offset), a.x.rows(), a.x.cols()});
}

template <class A, class Args>
NormBackward<A> backward_of(const Args& a, const Tensor& mean, const Tensor& rstd) {
  using R = typename A::Real;
  return {A(a.dx.tensor),           A(a.dy),    A(a.x),    A(a.w), a.dx.add, numbers_of<R>(mean), numbers_of<R>(rstd),
          static_cast<R>(a.offset), a.x.rows(), a.x.cols()};
}

}  // namespace

void layer_norm(const Exec& exec, const LayerNormArgs& a) noexcept {
  in_form(a.mean, {&a.y, &a.x, &a.w, &a.b}, [&](auto form) { layer_norm_in<decltype(form)>(exec, a); });
}
void layer_norm_backward(const Exec& exec, const LayerNormBackwardArgs& a) noexcept {
  in_form(a.mean, {&a.dx.tensor, &a.dy, &a.x, &a.w}, [&](auto form) {
    norm_backward_in(exec, backward_of<decltype(form)>(a, a.mean, a.rstd), a.dw, a.db, a.dy, a.x);
  });
}
void rms_norm(const Exec& exec, const RmsNormArgs& a) noexcept {
  in_form(a.r, {&a.y, &a.x, &a.w}, [&](auto form) { rms_norm_in<decltype(form)>(exec, a); });
}
void rms_norm_backward(const Exec& exec, const RmsNormBackwardArgs& a) noexcept {
  in_form(a.r, {&a.dx.tensor, &a.dy, &a.x, &a.w}, [&](auto form) {
    norm_backward_in(exec, backward_of<decltype(form)>(a, Tensor(), a.r), a.dw, {}, a.dy, a.x);
  });
}

}  // namespace qkv::kernels::cuda

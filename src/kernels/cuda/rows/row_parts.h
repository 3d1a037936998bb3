// Rows and the threads that work on them: as many as the width says, whatever the number of rows.
#pragma once

#include "kernels/cuda/packed.h"

namespace qkv::kernels::cuda {

// A row is worked on by T threads, as its width says; each has the packs of four t, t + T, ...
inline constexpr int kRowPack = 4, kKept = 8, kRowBlock = 128;
inline constexpr int64_t kWarpColumns = 32 * kRowPack * kKept;  // 1024

template <class F>
void by_width(int64_t width, F&& f) {
  if (width <= 8 * kRowPack * kKept) return f(Count<8>{});  // 256
  if (width <= kWarpColumns) return f(Count<32>{});
  f(Count<kRowBlock>{});
}

// What one thread has of a row. Packed rows stay in registers up to kKept packs, others are read again.
template <class A, int T>
class RowPart {
 public:
  using R = typename A::Real;
  __device__ RowPart(const A& rows, int64_t r, int64_t width) : rows_(rows), r_(r), width_(width) {
#pragma unroll
    for (int s = 0; s < kHere; ++s) {
      if (column(s) < width) kept_[s] = rows.template fetch<kRowPack>(r, column(s));
    }
  }

  // f(first column, numbers) for each pack.
  template <class F>
  __device__ void each(F&& f) const {
    walk([&](int64_t c, auto load) {
      R v[kRowPack];
      load(*this, v);
      f(c, v);
    });
  }
  // f(first column, numbers, numbers of the other part) for each pack of both.
  template <class Other, class F>
  __device__ void each_with(const Other& other, F&& f) const {
    walk([&](int64_t c, auto load) {
      R v[kRowPack], w[kRowPack];
      load(*this, v);
      load(other, w);
      f(c, v, w);
    });
  }
  template <class Other, class Third, class F>
  __device__ void each_with(const Other& other, const Third& third, F&& f) const {
    walk([&](int64_t c, auto load) {
      R v[kRowPack], w[kRowPack];
      load(*this, v);
      load(other, w);
      f(c, v, w, [&](R(&u)[kRowPack]) { load(third, u); });
    });
  }
  // f(number) for each number.
  template <class F>
  __device__ void numbers(F&& f) const {
    each([&](int64_t c, const R(&v)[kRowPack]) {
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        if (i < rows_.valid(c)) f(v[i]);
      }
    });
  }

 private:
  template <class, int>
  friend class RowPart;
  static constexpr int kHere = A::kUnroll > 1 ? kKept : 0;
  static __device__ int64_t column(int s) {
    return kRowPack * (static_cast<int>(threadIdx.x) % T + s * T);
  }

  // f(first column, load) for each pack, where load(part, numbers) gives those of any part of this width.
  template <class F>
  __device__ void walk(const F& f) const {
#pragma unroll
    for (int s = 0; s < kHere; ++s) {
      if (column(s) < width_) {
        f(column(s), [&](const auto& part, R(&v)[kRowPack]) { part.rows_.numbers(part.kept_[s], v); });
      }
    }
#pragma unroll 1
    for (int s = kHere; column(s) < width_; ++s) {
      f(column(s), [&](const auto& part, R(&v)[kRowPack]) { part.rows_.load(part.r_, column(s), v); });
    }
  }

  const A& rows_;
  int64_t r_, width_;
  typename A::template Raw<kRowPack> kept_[kHere > 0 ? kHere : 1];
};

// Over the T threads of a row: a tree in each warp, then the warps in order.
template <int T, class R, class Combine>
__device__ R row_combine(R x, const Combine& combine) {
  constexpr int kLanes = T < 32 ? T : 32;
  const unsigned mask = kLanes == 32 ? 0xffffffffU : ((1U << kLanes % 32) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
#pragma unroll
  for (int far = kLanes / 2; far > 0; far /= 2) x = combine(x, __shfl_xor_sync(mask, x, far));
  if constexpr (T > 32) {
    static_assert(T == kRowBlock);
    __shared__ R parts[T / 32];
    __syncthreads();  // the last one's readers are done
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
#pragma unroll
    for (int w = 1; w < T / 32; ++w) x = combine(x, parts[w]);
  }
  return x;
}
template <int T, class R>
__device__ R row_sum(R x) {
  return row_combine<T>(x, [](R a, R b) { return a + b; });
}
template <int T, class R>
__device__ R row_max(R x) {
  return row_combine<T>(x, [](R a, R b) { return b > a ? b : a; });
}

template <int T, class F>
__global__ void __launch_bounds__(kRowBlock) run_rows_of(Recorded recorded, int64_t rows, const __grid_constant__ F f) {
  constexpr int kEach = kRowBlock / T;
  let_next_start(recorded);
  wait_for_last();
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * kEach + threadIdx.x / T; r < rows;
       r += static_cast<int64_t>(gridDim.x) * kEach) {
    f(r);
  }
}
// f(row) by T threads.
template <int T, class F>
void each_row_by(const Exec& exec, int64_t rows, const F& f) {
  if (rows <= 0) return;
  constexpr int64_t kEach = kRowBlock / T;
  launch(exec, run_rows_of<T, F>, static_cast<unsigned>(std::min((rows + kEach - 1) / kEach, kMostBlocks)), kRowBlock,
         0, rows, f);
}

// Calls f(Packed<float>) where every tensor is f32 and lies well, else f(Loose<R>).
template <class F>
void in_float_form(const Tensor& real, std::initializer_list<const Tensor*> all, F&& f) {
  if (real.dtype() == DType::f64) return f(Loose<double>{});
  if (packed<float>(all, kRowPack)) return f(Packed<float>{});
  f(Loose<float>{});
}

// Calls f(X, Y, W): the forms of tensors like x, like y, and of weights in float.
template <class F>
void in_row_form(const Tensor& real, std::initializer_list<const Tensor*> like_x,
                 std::initializer_list<const Tensor*> like_y, std::initializer_list<const Tensor*> weights, F&& f) {
  using Bf16 = __nv_bfloat16;
  const auto takes = [&]<class X, class Y>(Packed<X> x, Packed<Y> y) {
    const bool all = packed<X>(like_x, kRowPack) && packed<Y>(like_y, kRowPack) && packed<float>(weights, kRowPack);
    if (all) f(x, y, Packed<float>{});
    return all;
  };
  if (real.dtype() == DType::f64) return f(Loose<double>{}, Loose<double>{}, Loose<double>{});
  if (takes(Packed<float>{}, Packed<Bf16>{}) || takes(Packed<float>{}, Packed<float>{}) ||
      takes(Packed<Bf16>{}, Packed<Bf16>{})) {
    return;
  }
  f(Loose<float>{}, Loose<float>{}, Loose<float>{});
}

}  // namespace qkv::kernels::cuda

#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/ptx.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kTile = 64, kInner = 32, kPad = 8;

__host__ __device__ inline unsigned tiles(int64_t count) {
  return static_cast<unsigned>((count + kTile - 1) / kTile);
}

// Which rows and which inner range a block works on.
struct Part {
  int64_t first_m, end_m, first_k, end_k;
};
__device__ Part part_of(const ProductArgs& p, int64_t group) {
  if (p.grouped == ProductArgs::Grouped::rows) return {p.groups[group], p.groups[group + 1], 0, p.k};
  if (p.grouped == ProductArgs::Grouped::inner) return {0, p.m, p.groups[group], p.groups[group + 1]};
  return {0, p.m, 0, p.k};
}

template <class R>
__device__ void put_out(const ProductArgs& p, int64_t group, int64_t m, int64_t n, R sum) {
  sum = p.scaled(sum);
  if (p.bias) sum += p.bias.template get<R>(p.bias.rank == 2 ? p.bias.at(group) + n : n);
  if (p.residual) sum = p.residual.template get<R>(p.residual.at(m) + n) + sum;
  p.out.put(
      (p.grouped == ProductArgs::Grouped::inner ? group * p.out_group : 0) + m * p.out.strides[p.out.rank - 2] + n, sum,
      p.add);
}

template <class R>
__device__ R load(const Operand& o, int64_t offset) {
  View v;
  v.data = const_cast<std::byte*>(o.data);
  v.dtype = o.dtype;
  return v.get<R>(offset);
}

// 64 x 64 outputs a block, 4 x 4 a thread.
template <class R>
__global__ void __launch_bounds__(kThreads) product_fma(ProductArgs p) {
  __shared__ R as[kInner][kTile + 1], bs[kInner][kTile + 1];
  const int64_t group = blockIdx.z;
  const Part part = part_of(p, group);
  const unsigned across = tiles(p.n);
  const int64_t m0 = part.first_m + int64_t{blockIdx.x / across} * kTile, n0 = int64_t{blockIdx.x % across} * kTile;
  if (m0 >= part.end_m) return;
  const int64_t b_group = p.grouped == ProductArgs::Grouped::rows ? group * p.b.group : 0;
  const int tm = threadIdx.x / 16, tn = threadIdx.x % 16;
  R sum[4][4] = {};
  for (int64_t k0 = part.first_k; k0 < part.end_k; k0 += kInner) {
    for (int i = threadIdx.x; i < kTile * kInner; i += kThreads) {
      // Neighbouring threads read along the axis that lies together in memory.
      const int row_a = p.a.k == 1 ? i / kInner : i % kTile, k_a = p.a.k == 1 ? i % kInner : i / kTile;
      const int row_b = p.b.k == 1 ? i / kInner : i % kTile, k_b = p.b.k == 1 ? i % kInner : i / kTile;
      as[k_a][row_a] = m0 + row_a < part.end_m && k0 + k_a < part.end_k
                           ? load<R>(p.a, (m0 + row_a) * p.a.row + (k0 + k_a) * p.a.k)
                           : R{0};
      bs[k_b][row_b] = n0 + row_b < p.n && k0 + k_b < part.end_k
                           ? load<R>(p.b, b_group + (n0 + row_b) * p.b.row + (k0 + k_b) * p.b.k)
                           : R{0};
    }
    __syncthreads();
    for (int k = 0; k < kInner && k0 + k < part.end_k; ++k) {
      R a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = as[k][tm + 16 * i];
#pragma unroll
      for (int i = 0; i < 4; ++i) b[i] = bs[k][tn + 16 * i];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = fma(a[i], b[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t m = m0 + tm + 16 * i, n = n0 + tn + 16 * j;
      if (m < part.end_m && n < p.n) put_out(p, group, m, n, sum[i][j]);
    }
  }
}

// The same tile with the tensor core: 8 warps, each 16 x 32 outputs. Rows and columns past the end are zeros, and a
// product with zero leaves an accumulator as it is.
__global__ void __launch_bounds__(kThreads) product_mma(ProductArgs p) {
  constexpr int kRow = kInner + kPad;
  __shared__ __align__(16) uint16_t as[kTile][kRow], bs[kTile][kRow];
  const int64_t group = blockIdx.z;
  const Part part = part_of(p, group);
  const unsigned across = tiles(p.n);
  const int64_t m0 = part.first_m + int64_t{blockIdx.x / across} * kTile, n0 = int64_t{blockIdx.x % across} * kTile;
  if (m0 >= part.end_m) return;
  const int64_t b_group = p.grouped == ProductArgs::Grouped::rows ? group * p.b.group : 0;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int wm = warp / 2 * 16, wn = warp % 2 * 32;
  float sum[4][4] = {};
  const auto multiply = [&](const Operand& a, const Operand& b, int64_t first_k, int64_t end_k) {
    const auto* a_data = reinterpret_cast<const uint16_t*>(a.data);
    const auto* b_data = reinterpret_cast<const uint16_t*>(b.data) + b_group;
    for (int64_t k0 = first_k; k0 < end_k; k0 += kInner) {
      for (int i = threadIdx.x; i < kTile * kInner; i += kThreads) {
        const int row_a = a.k == 1 ? i / kInner : i % kTile, k_a = a.k == 1 ? i % kInner : i / kTile;
        const int row_b = b.k == 1 ? i / kInner : i % kTile, k_b = b.k == 1 ? i % kInner : i / kTile;
        as[row_a][k_a] =
            m0 + row_a < part.end_m && k0 + k_a < end_k ? a_data[(m0 + row_a) * a.row + (k0 + k_a) * a.k] : uint16_t{0};
        bs[row_b][k_b] =
            n0 + row_b < p.n && k0 + k_b < end_k ? b_data[(n0 + row_b) * b.row + (k0 + k_b) * b.k] : uint16_t{0};
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kInner; k += 16) {
        if (k0 + k >= end_k) break;
        const auto pair = [](const uint16_t* at) { return *reinterpret_cast<const uint32_t*>(at); };
        const uint32_t left[4] = {pair(&as[wm + g][k + 2 * t]), pair(&as[wm + g + 8][k + 2 * t]),
                                  pair(&as[wm + g][k + 2 * t + 8]), pair(&as[wm + g + 8][k + 2 * t + 8])};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          mma(sum[j], left, pair(&bs[wn + 8 * j + g][k + 2 * t]), pair(&bs[wn + 8 * j + g][k + 2 * t + 8]));
        }
      }
      __syncthreads();
    }
  };
  multiply(p.a, p.b, part.first_k, part.end_k);
  for (int i = 0; i < p.more_count; ++i) multiply(p.more[i].a, p.more[i].b, 0, p.more[i].k);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t m = m0 + wm + g + i / 2 * 8, n = n0 + wn + 8 * j + 2 * t + i % 2;
      if (m < part.end_m && n < p.n) put_out(p, group, m, n, sum[j][i]);
    }
  }
}

}  // namespace

void product(const Exec& exec, const ProductArgs& p) {
  if (p.m <= 0 || p.n <= 0 || product_of_many_rows(exec, p) || product_of_floats(exec, p)) return;
  const dim3 grid(tiles(p.m) * tiles(p.n), 1, static_cast<unsigned>(p.group_count));  // only x may be large
  const bool of_bf16 = p.a.dtype == DType::bf16 && p.b.dtype == DType::bf16;
  const auto kernel = p.out.dtype == DType::f64 ? product_fma<double> : of_bf16 ? product_mma : product_fma<float>;
  launch_after(stream_of(exec), kernel, grid, kThreads, 0, p);
}

}  // namespace qkv::kernels::cuda

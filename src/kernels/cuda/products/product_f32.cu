// Products of many rows of f32: tiles of 128 x 128 outputs, 8 x 8 a thread, the next 8 of k loaded while these are
// multiplied. One chain of fused multiply-adds per output, k ascending, as product_fma: the same bits.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/product.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kSide = 128, kSomeK = 8, kRow = kSide + 4;

__host__ __device__ inline unsigned sides(int64_t count) {
  return static_cast<unsigned>((count + kSide - 1) / kSide);
}

// 128 x 8 numbers of an operand: four a thread, along k or, transposed, along rows. Zeros outside.
template <bool kTransposed>
struct Chunk {
  float4 of;

  static __device__ int2 place() {  // row and k
    const int i = static_cast<int>(threadIdx.x);
    return kTransposed ? make_int2(i % (kSide / 4) * 4, i / (kSide / 4))
                       : make_int2(i / (kSomeK / 4), i % (kSomeK / 4) * 4);
  }
  __device__ void load(const Operand& o, int first_row, int rows, int first_k, int inner) {
    const int2 at = place();
    const int row = first_row + at.x, k = first_k + at.y;
    const auto* from = reinterpret_cast<const float*>(o.data) + (kTransposed ? k * o.k + row : row * o.row + k);
    of = row < rows && k < inner ? *reinterpret_cast<const float4*>(from) : float4{};
  }
  __device__ void store(float (&to)[kSomeK][kRow]) const {
    const int2 at = place();
    if (kTransposed) {
      *reinterpret_cast<float4*>(&to[at.y][at.x]) = of;
    } else {
      to[at.y][at.x] = of.x;
      to[at.y + 1][at.x] = of.y;
      to[at.y + 2][at.x] = of.z;
      to[at.y + 3][at.x] = of.w;
    }
  }
};

// Not inlined: 64 copies a kernel, each for three dtypes, would take nvcc half a minute.
__device__ __noinline__ void finish_sum(const ProductArgs& p, int64_t m, int64_t n, float sum) {
  sum = p.scaled(sum);
  if (p.bias) sum += p.bias.get<float>(n);
  if (p.residual) sum = p.residual.get<float>(p.residual.at(m) + n) + sum;
  p.out.put(m * p.out.strides[p.out.rank - 2] + n, sum, p.add);
}

template <bool kA, bool kB>
__global__ void __launch_bounds__(kThreads, 2) product_f32(const __grid_constant__ ProductArgs p) {
  __shared__ __align__(16) float as[2][kSomeK][kRow], bs[2][kSomeK][kRow];
  const unsigned across = sides(p.n);
  const int m0 = static_cast<int>(blockIdx.x / across) * kSide, n0 = static_cast<int>(blockIdx.x % across) * kSide;
  const int rows = static_cast<int>(p.m), columns = static_cast<int>(p.n), inner = static_cast<int>(p.k);
  const int tm = static_cast<int>(threadIdx.x) / 16 * 4, tn = static_cast<int>(threadIdx.x) % 16 * 4;
  Chunk<kA> a;
  Chunk<kB> b;
  a.load(p.a, m0, rows, 0, inner);
  b.load(p.b, n0, columns, 0, inner);
  float sums[8][8] = {};
  for (int k0 = 0, now = 0; k0 < inner; k0 += kSomeK, now ^= 1) {
    a.store(as[now]);
    b.store(bs[now]);
    __syncthreads();
    a.load(p.a, m0, rows, k0 + kSomeK, inner);
    b.load(p.b, n0, columns, k0 + kSomeK, inner);
    const int deep = min(inner - k0, kSomeK);
    const auto step = [&](int k) {
      float x[8], y[8];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *reinterpret_cast<float4*>(x + 4 * h) = *reinterpret_cast<const float4*>(&as[now][k][tm + 64 * h]);
        *reinterpret_cast<float4*>(y + 4 * h) = *reinterpret_cast<const float4*>(&bs[now][k][tn + 64 * h]);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] = fmaf(x[i], y[j], sums[i][j]);
      }
    };
    if (deep == kSomeK) {
#pragma unroll
      for (int k = 0; k < kSomeK; ++k) step(k);
    } else {
      for (int k = 0; k < deep; ++k) step(k);
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int64_t m = m0 + tm + i / 4 * 64 + i % 4;
    if (m >= rows) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int64_t n = n0 + tn + j / 4 * 64 + j % 4;
      if (n < columns) finish_sum(p, m, n, sums[i][j]);
    }
  }
}

// In chunks of four along the axis that lies together.
bool loads_well(const Operand& o, int64_t rows, int64_t inner) {
  const bool transposed = o.k != 1;
  return o.dtype == DType::f32 && (!transposed || o.row == 1) && (transposed ? o.k : o.row) % 4 == 0 &&
         (transposed ? rows : inner) % 4 == 0 && reinterpret_cast<uintptr_t>(o.data) % 16 == 0;
}

}  // namespace

bool product_of_floats(const Exec& exec, const ProductArgs& p) {
  constexpr int64_t kMost = INT32_MAX / 2;
  if (p.grouped != ProductArgs::Grouped::none || p.m <= 64 || p.m > kMost || p.n > kMost || p.k > kMost || p.k <= 0 ||
      p.out.dtype == DType::f64 || !loads_well(p.a, p.m, p.k) || !loads_well(p.b, p.n, p.k)) {
    return false;
  }
  const dim3 grid(sides(p.m) * sides(p.n));  // only x may be large
  const auto kernel = p.a.k != 1 ? (p.b.k != 1 ? product_f32<true, true> : product_f32<true, false>)
                                 : (p.b.k != 1 ? product_f32<false, true> : product_f32<false, false>);
  launch_after(stream_of(exec), kernel, grid, kThreads, 0, p);
  return true;
}

}  // namespace qkv::kernels::cuda

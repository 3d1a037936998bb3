// Pieces of the backward kernels: copies, fragments, operands, what is hidden, and the launch.
#pragma once

#include "kernels/cuda/attention/attention_backward.h"
#include "kernels/cuda/formulas.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {

template <int D>
__device__ void load_head(uint32_t to, const CUtensorMap* map, int head, int row, uint32_t barrier) {
#pragma unroll
  for (int d = 0; d < D / 64; ++d) load_tile(to + d * kPanel, map, d * 64, head, row, barrier);
}

// LSE and delta are f32.
__device__ __forceinline__ float& number_at(const View& v, int64_t row, int head) {
  return reinterpret_cast<float*>(v.data)[v.at(row, head)];
}

__device__ __forceinline__ Sight::Interval shared_interval(uint32_t at) {
  const int2 v = shared_int2(at);
  return {v.x, v.y};
}
__device__ __forceinline__ void put_shared(uint32_t at, Sight::Interval v) {
  put_shared(at, make_int2(v.begin, v.end));
}

__device__ __forceinline__ uint32_t pack_pair(float low, float high) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&v);
}
// 64 x 64 sums as the four k16 steps of a left operand.
__device__ __forceinline__ void pack(uint32_t (&to)[4][4], const float (&x)[32]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[k][i] = pack_pair(x[8 * k + 2 * i], x[8 * k + 2 * i + 1]);
  }
}

// A left operand of 64 rows and D numbers: kept as fragments in registers, or read from shared memory each time.
template <int D, bool kKept>
struct Left {
  uint32_t fragments[kKept ? D / 16 : 1][4];
  uint32_t tile;

  __device__ __forceinline__ void take(uint32_t from, int warp, int lane) {
    tile = from;
    if constexpr (kKept) {
      const int row = warp * 16 + lane % 16;
#pragma unroll
      for (int k = 0; k < D / 16; ++k) {
        const uint32_t at = from + k / 4 * kPanel + row * 128 + ((2 * (k % 4) + lane / 16) ^ (row % 8)) * 16;
        read_fragments(fragments[k], at);
      }
    }
  }
  // sums = this right^T
  __device__ __forceinline__ void multiply(float (&sums)[32], uint32_t right) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      const uint64_t b = tile_descriptor(right + k / 4 * kPanel, 16, 1024) + 2 * (k % 4);
      if constexpr (kKept) {
        multiply_registers<0>(sums, fragments[k], b, k > 0);
      } else {
        multiply_shared(sums, tile_descriptor(tile + k / 4 * kPanel, 16, 1024) + 2 * (k % 4), b, k > 0);
      }
    }
  }
};
// sums += left right, left 64 x 64 and right 64 x D
template <int D>
__device__ __forceinline__ void add_product(float (&sums)[D / 2], const uint32_t (&left)[4][4], uint32_t right) {
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply_registers<1>(sums, left[k], tile_descriptor(right + k * 2048, kPanel, 1024), 1);
}

// Dropout where rows are columns: of S^T's element e this bit says whether it is kept. Two keys for each row, the even rows
// first.
__device__ constexpr int drop_bit_of_key(int e) {
  return 16 * (e % 2) + e / 4 * 2 + e / 2 % 2;
}
// Packed P^T times one or zero: what is no number stays so.
__device__ __forceinline__ void drop_keys(uint32_t (&p)[4][4], uint32_t kept) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const uint32_t tops = kept << (7 - i % 8);
    const uint32_t factor = permute_bytes(tops, i < 8 ? 0xaa88 : 0xbb99) & 0x3f803f80U;
    uint32_t& pair = p[i / 4][i % 4];
    pair = multiply_pairs(pair, factor);
  }
}

// Where element e of 64 x 64 sums lies: row lane / 4 + 8 (e / 2 % 2) of the warp's 16, this column from 2 (lane % 4) on.
__device__ constexpr int column_of(int e) {
  return e / 4 * 8 + e % 2;
}

// Zero where the column is outside of its row's interval; `first` is the column of element 0.
__device__ __forceinline__ void hide(float (&x)[32], const Sight::Interval (&seen)[2], int first) {
#pragma unroll
  for (int e = 0; e < 32; ++e) {
    const Sight::Interval& s = seen[e / 2 % 2];
    const auto from_begin = static_cast<unsigned>(first + column_of(e) - s.begin);
    if (from_begin >= static_cast<unsigned>(s.end - s.begin)) x[e] = 0;
  }
}

__device__ __forceinline__ void group_barrier(int warpgroup) {
  meet_singly<128>(1 + warpgroup);
}

__device__ __forceinline__ uint32_t full_exponents(uint32_t pair) {
  return ((pair & 0x7f807f80U) + 0x00800080U) & 0x80008000U;
}
// Of kVectors times 16 bytes for each of kOf threads: not 0 where this thread's have NaN or Inf.
template <int kOf, int kVectors>
__device__ __forceinline__ uint32_t find_nan(uint32_t from) {
  uint32_t found = 0;
#pragma unroll(kVectors <= 8 ? 4 : 1)
  for (int i = 0; i < kVectors; ++i) {
    const float4 v = shared_float4(from + (i * kOf + threadIdx.x % kOf) * 16);
    found |= full_exponents(__float_as_uint(v.x)) | full_exponents(__float_as_uint(v.y)) |
             full_exponents(__float_as_uint(v.z)) | full_exponents(__float_as_uint(v.w));
  }
  return found;
}
// They become zeros on the way from `from` to `to`.
template <int kOf, int kVectors>
__device__ __forceinline__ void drop_nan(uint32_t from, uint32_t to) {
#pragma unroll 1
  for (int i = 0; i < kVectors * 4; ++i) {
    const uint32_t at = (i * kOf + threadIdx.x % kOf) * 4;
    uint32_t pair = shared_uint(from + at);
    const uint32_t bad = full_exponents(pair);
    if ((bad & 0x8000U) != 0) pair &= 0xffff0000U;
    if ((bad & 0x80000000U) != 0) pair &= 0x0000ffffU;
    put_shared(to + at, pair);
  }
  fence_for_copies();
}

// 64 rows of D numbers that not all see: 0 times NaN is NaN, so NaN and Inf become zeros in the tile that is returned,
// `to` if there were any. Those who see them have NaN in P or dS. By the 128 threads of a warpgroup.
template <int D>
__device__ __forceinline__ uint32_t without_nan(uint32_t from, uint32_t to, int warpgroup) {
  constexpr int kVectors = D / 64 * kPanel / 16 / 128;
  const uint32_t found = find_nan<128, kVectors>(from);
  if (!meet_and_ask<128>(1 + warpgroup, found)) return from;
  drop_nan<128, kVectors>(from, to);
  group_barrier(warpgroup);
  return to;
}

// delta of the thread's two rows of a warpgroup's 64: the diagonal of dz z^T.
__device__ __forceinline__ void take_diagonal(float (&delta)[2], const float (&dots)[32]) {
  const int warp = static_cast<int>(threadIdx.x) % 128 / 32, row = static_cast<int>(threadIdx.x) % 32 / 4;
  float diagonal[2] = {};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if (w != warp) continue;
    diagonal[0] = row % 2 == 0 ? dots[8 * w] : dots[8 * w + 1];
    diagonal[1] = row % 2 == 0 ? dots[8 * w + 6] : dots[8 * w + 7];
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) delta[i] = __shfl_sync(0xffffffffU, diagonal[i], row * 4 + row / 2);
}

// Of 64 x D sums, times `by`: the thread's row i of two, as row `r` if it is there.
template <int D>
__device__ __forceinline__ void put_row(const HeadGradient& to, int64_t r, bool there, int head,
                                        const float (&sums)[D / 2], int i, float by) {
  const int lane = static_cast<int>(threadIdx.x) % 4;
  __nv_bfloat16* const row = to.data + r * to.row + head * to.head;
  float2 x[D / 8];
#pragma unroll
  for (int n = 0; n < D / 8; ++n) x[n] = {sums[4 * n + 2 * i] * by, sums[4 * n + 2 * i + 1] * by};
  if (to.add) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const int column = 8 * n + 2 * lane;
      if (!there || column >= to.columns) continue;
      const float2 before = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(row + column));
      x[n] = {before.x + x[n].x, before.y + x[n].y};
    }
  }
#pragma unroll
  for (int n = 0; n < D / 8; n += 4) {
    uint32_t v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = pack_pair(x[n + k].x, x[n + k].y);
    gather_columns(v);
    const int column = 8 * (n + lane);
    if (there && column < to.columns) *reinterpret_cast<uint4*>(row + column) = {v[0], v[1], v[2], v[3]};
  }
}

// At most so many tasks, a tile and a head each, by blocks that live as long as there are some.
template <class C, auto kKernel>
void launch_tasks(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps, int64_t tasks) {
  static const cudaError_t prepared =
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kShared);
  static_cast<void>(prepared);  // else the launch fails, and says so
  const auto grid = static_cast<unsigned>(std::min<int64_t>(tasks, multiprocessors() * C::kTogether));
  launch(exec, kKernel, grid, C::kThreads, C::kShared, maps, pass);
}

}  // namespace qkv::kernels::cuda

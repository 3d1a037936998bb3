// Rows of weights in blocks and rows of x in bytes, as the integer tensor core multiplies them: sixteen rows of weights
// by eight rows of x, 32 columns at a time.
#pragma once

#include "kernels/cuda/products/block_formats.h"
#include "kernels/cuda/products/product_skinny_finish.h"
#include "kernels/cuda/ptx.h"

namespace qkv::kernels::cuda::blocks {

using skinny::Plane;

struct BlockJob {
  const uint8_t* w = nullptr;
  int64_t matrix_bytes = 0, row_bytes = 0;  // a row of panels: a panel
  int outputs = 0, inner = 0, block = 0;
  const int8_t* q = nullptr;
  const float* scales = nullptr;
  const int32_t* sums = nullptr;  // of q, per part
  int part = 32;
  int64_t first = 0, rows = 0;  // of x, in q
  const int32_t* groups = nullptr;
  Plane y, bias, residual;
};

// Which rows of x meet the matrix blockIdx.z, in q.
struct RowRange {
  int begin, end;
};
__device__ inline RowRange rows_of(const BlockJob& job, int64_t matrix) {
  if (job.groups == nullptr) return {0, static_cast<int>(job.rows)};
  const int64_t begin = job.groups[matrix] - job.first, end = job.groups[matrix + 1] - job.first;
  return {static_cast<int>(begin > 0 ? begin : 0), static_cast<int>(end < job.rows ? end : job.rows)};
}

// Rows g and g + 8 of sixteen rows of weights, g = lane / 4. words() gives a thread's share of 32 columns: of both rows
// the columns that `first` names, then of both those that `second` names.
template <class Q>
struct GgufRows : Q {
  static constexpr bool kPanels = false;
  const uint8_t* row[2];
  int t;

  __device__ GgufRows(const BlockJob& job, int64_t matrix, int panel, int lane) : t(lane % 4) {
    for (int i = 0; i < 2; ++i) {
      const int at = min(panel * 16 + lane / 4 + 8 * i, job.outputs - 1);
      row[i] = job.w + matrix * job.matrix_bytes + at * job.row_bytes;
    }
  }
  __device__ const uint8_t* block(int b, int i) const { return row[i] + static_cast<int64_t>(b) * Q::kBytes; }
  __device__ void words(int chunk, uint32_t (&a)[4]) const {
    constexpr int kEach = Q::kElements / 32;
    Q::words(block(chunk / kEach, 0), chunk % kEach, t, a[0], a[2]);
    Q::words(block(chunk / kEach, 1), chunk % kEach, t, a[1], a[3]);
  }
  __device__ void call_for(int chunk) const {  // into the second cache
    for (int i = 0; i < 2; ++i) {
      prefetch(block(chunk * 32 / Q::kElements, i) + t * 32);
    }
  }
  __device__ int first() const { return 4 * t; }
  __device__ int second() const { return 16 + 4 * t; }
  __device__ float scale_of(int b, int i) const { return Q::scale(block(b, i)); }
  __device__ float minimum_of(int b, int i) const { return Q::minimum(block(b, i)); }
  __device__ int sub_of(int b, int part, int i) const { return Q::sub(block(b, i), part); }
  __device__ int low_of(int b, int part, int i) const { return Q::low(block(b, i), part); }
};

template <bool kNibbles>
struct PanelRows : OneScale {
  static constexpr bool kPanels = true;
  const uint8_t* at;
  int t, group, group_bytes;

  __device__ PanelRows(const BlockJob& job, int64_t matrix, int panel, int lane)
      : at(job.w + matrix * job.matrix_bytes + panel * job.row_bytes + lane / 4 * 4),
        t(lane % 4),
        group(job.block),
        group_bytes((kNibbles ? 8 : 16) * job.block) {}
  __device__ const uint8_t* scales(int b) const {
    return at + static_cast<int64_t>(b / 2) * (kPanelLine + 2 * group_bytes);
  }
  __device__ void words(int chunk, uint32_t (&a)[4]) const {
    const int b = chunk * 32 / group, line = chunk * 32 % group / (kNibbles ? 8 : 4) + (kNibbles ? t : 2 * t);
    const uint8_t* from = scales(b) + kPanelLine + b % 2 * group_bytes + line * kPanelLine;
    const auto word = [&](int offset) { return __ldg(reinterpret_cast<const uint32_t*>(from + offset)); };
    for (int i = 0; i < 2; ++i) {
      const uint32_t one = word(32 * i);
      a[i] = kNibbles ? less(one & 0x0f0f0f0fU, 8) : one ^ 0x80808080U;
      a[2 + i] = kNibbles ? less(one >> 4 & 0x0f0f0f0fU, 8) : word(kPanelLine + 32 * i) ^ 0x80808080U;
    }
  }
  __device__ void call_for(int chunk) const {
    prefetch(scales(chunk * 32 / group) + chunk * 32 % group * (kNibbles ? 8 : 16));
  }
  __device__ int first() const { return 8 * t; }
  __device__ int second() const { return 8 * t + 4; }
  __device__ float scale_of(int b, int i) const {
    return __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(scales(b) + 32 * i + 2 * (b % 2)));
  }
  __device__ float minimum_of(int, int) const { return 0; }
  __device__ int sub_of(int, int, int) const { return 1; }
  __device__ int low_of(int, int, int) const { return 1; }
};

template <class W>
__device__ int chunks_in_block(const BlockJob& job) {  // of 32 columns in a block
  return W::kPanels ? job.block / 32 : W::kElements / 32;
}

// I and M of a block for sixteen rows of weights and eight rows of x: number i is of row g + 8 (i / 2) and of x row
// 2 t + i % 2.
struct BlockSums {
  int total[4] = {}, lowest[4] = {};
};

// Columns of chunk `chunk`, the c-th of block b, for the eight rows of x from `m` on; `last` is the last there is.
template <class W>
__device__ void add_chunk(const BlockJob& job, const W& w, BlockSums& s, const uint32_t (&a)[4], int chunk, int b,
                          int c, int m, int last) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto* x = job.q + static_cast<int64_t>(min(m + lane / 4, last)) * job.inner + chunk * 32;
  const auto word = [&](int at) { return *reinterpret_cast<const uint32_t*>(x + at); };
  const uint32_t b0 = word(w.first()), b1 = word(w.second());
  constexpr int kParts = W::kHalfParts ? 2 : 1;
  if constexpr (!W::kSubscales) {
    mma_bytes(s.total, a, b0, b1);
  } else {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      int sum[4] = {};
      if constexpr (W::kHalfParts) {
        mma_bytes(sum, a[2 * p], a[2 * p + 1], p == 0 ? b0 : b1);
      } else {
        mma_bytes(sum, a, b0, b1);
      }
      const int sub[2] = {w.sub_of(b, c * kParts + p, 0), w.sub_of(b, c * kParts + p, 1)};
#pragma unroll
      for (int i = 0; i < 4; ++i) s.total[i] += sum[i] * sub[i / 2];
    }
  }
  if constexpr (W::kMinima) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const int low[2] = {w.low_of(b, c * kParts + p, 0), w.low_of(b, c * kParts + p, 1)};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t row = min(m + 2 * (lane % 4) + i % 2, last);
        s.lowest[i] += low[i / 2] * job.sums[row * (job.inner / job.part) + chunk * kParts + p];
      }
    }
  }
}

}  // namespace qkv::kernels::cuda::blocks

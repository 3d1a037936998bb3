// One row and up to eight heads that read one key head: what a block of four warps keeps and how it moves it.
//
// Keys are the rows of the products and heads their columns. Lane 4 r + t of a warp has heads 2 t and 2 t + 1, and of
// every eight keys the one with remainder r.
#pragma once

#include "kernels/cuda/attention/attention_fast.h"
#include "kernels/cuda/ptx.h"

namespace qkv::kernels::cuda {

inline constexpr int kBlockThreads = 32 * kSpanBlocks, kTileHeads = 8;
inline constexpr int kMostCounted = 1 << 16;  // tasks whose finished blocks are counted

static __device__ unsigned arrivals[kMostCounted];  // zero between launches

struct RowPlan {
  RowsOf which;
  int tile, tiles;    // heads a block has, and how many such tiles there are
  int splits, spans;  // blocks that share a row, and the most spans it can have
  float* partial;     // [task][span][tile][kPartial]
  const uint8_t* marks;
  int64_t items;  // tasks times splits, or marks
};

template <int kWidth>
constexpr int kBlocksEach = kWidth == 64 ? 3 : 1;  // a multiprocessor

template <int kWidth>
struct Shared {
  uint8_t keys[kKeySpan * kWidth * 2], values[kKeySpan * kWidth * 2];
  uint32_t probabilities[kSpanBlocks][4][2][32];
  float highest[kSpanBlocks][kTileHeads];
  int argmax[kSpanBlocks][kTileHeads];
  float sums[3][kSpanBlocks][kTileHeads][8];
  bool last;
};

// 16-byte piece `chunk` of a row, swizzled so that eight rows lie in different banks.
template <int kWidth>
__device__ uint32_t piece(uint32_t base, int row, int chunk) {
  return base + row * kWidth * 2 + (chunk ^ (row & 7)) * 16;
}
// Over the lanes that share heads, one for each remainder of key / 8.
__device__ inline float remainder_max(float x) {
  for (int lanes = 4; lanes < 32; lanes *= 2) x = fmaxf(x, __shfl_xor_sync(~0U, x, lanes));
  return x;
}
__device__ inline float remainder_sum(float x) {
  for (int lanes = 4; lanes < 32; lanes *= 2) x += __shfl_xor_sync(~0U, x, lanes);
  return x;
}

// What a block works on: one row, heads first_head ... of one key head.
struct RowTask {
  FastSegment segment;
  int segment_index, row, position, first_head, kv_head;
  uint32_t members;  // which of the tile's heads
  SeenKeys seen;
};

// Sums of one row: lane 4 r + t of each warp has heads 2 t and 2 t + 1; a warp has its own columns of z.
template <int kWidth, bool kStats>
struct RowState {
  static constexpr int kTiles = kWidth / 16 / kSpanBlocks;  // of 16 columns, a warp
  RowSums sums[2];
  float z[kTiles][4] = {};
  float mass[2] = {};  // of class r

  __device__ void append(const RowState& span, float unit2) {
    MergeBy by[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      by[i] = merge<kStats>(sums[i], span.sums[i], unit2);
      mass[i] = fmaf(span.mass[i], by[i].span, mass[i] * by[i].total);
    }
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int k = 0; k < 4; ++k) z[m][k] = fmaf(span.z[m][k], by[k % 2].span, z[m][k] * by[k % 2].total);
    }
  }
};

}  // namespace qkv::kernels::cuda

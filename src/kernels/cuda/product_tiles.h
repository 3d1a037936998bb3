// Which tiles of outputs a product of many rows has, and in which order they are taken.
#pragma once

#include "kernels/cuda/product_finish.h"

namespace qkv::kernels::cuda {

constexpr int kRows = 128, kDepth = 64;  // of a tile, of a step along k
constexpr int kMostGroups = 256;

struct Job {
  FinishArgs finish;
  int m = 0, n = 0, k = 0;
  int pieces = 1, piece_k = 0;  // k cut into pieces, whole outputs of each behind one another
  const int32_t* groups = nullptr;
  int group_count = 1;
  ProductArgs::Grouped grouped = ProductArgs::Grouped::none;
  int64_t next_out = 0;  // bytes from the output of one group or piece to the next
};

struct Tile {
  int m, end_m, n;        // rows and first column
  int group;              // or piece
  int first_k, steps, k;  // of the last step only the numbers below k count
};

// Which tiles there are. With groups of rows, first[g] is the first row of tiles of group g.
template <int kN>
struct TileList {
  const Job& job;
  const int* first;
  int columns, rows, count;

  __device__ TileList(const Job& j, const int* first_rows)
      : job(j), first(first_rows), columns((j.n + kN - 1) / kN), rows((j.m + kRows - 1) / kRows) {
    const bool by_rows = j.grouped == ProductArgs::Grouped::rows;
    count = by_rows                                    ? first[j.group_count] * columns
            : j.grouped == ProductArgs::Grouped::inner ? rows * columns * j.group_count
                                                       : rows * columns * j.pieces;
  }

  // Tiles in groups of eight rows, so that neighbours share what is in the cache.
  __device__ int2 place(int t, int high) const {
    constexpr int kHigh = 8;
    const int band = t / (kHigh * columns), top = band * kHigh, some = min(kHigh, high - top);
    const int i = t - band * kHigh * columns;
    return {(top + i % some) * kRows, i / some * kN};
  }

  __device__ Tile operator()(int t) const {
    if (job.grouped == ProductArgs::Grouped::rows) {
      int low = 0, end = job.group_count;  // the last group whose first row of tiles is not after t
      while (end - low > 1) {
        const int middle = (low + end) / 2;
        (first[middle] * columns <= t ? low : end) = middle;
      }
      const int2 at = place(t - first[low] * columns, first[low + 1] - first[low]);
      return {job.groups[low] + at.x, job.groups[low + 1], at.y, low, 0, (job.k + kDepth - 1) / kDepth, job.k};
    }
    const int which = t / (rows * columns);
    const int2 at = place(t - which * rows * columns, rows);
    int from = which * job.piece_k, to = min(from + job.piece_k, job.k);
    if (job.grouped == ProductArgs::Grouped::inner) {
      from = job.groups[which];
      to = job.groups[which + 1];
    }
    return {at.x, job.m, at.y, which, from, max((to - from + kDepth - 1) / kDepth, 1), to};
  }
};

// first[g] = rows of tiles of the groups before g, by one warp.
__device__ inline void count_group_tiles(const Job& job, int* first) {
  int before = 0;
  const int lane = static_cast<int>(threadIdx.x);
  for (int g = 0; g < job.group_count; g += 32) {
    const int mine = g + lane;
    int sum = mine < job.group_count ? (job.groups[mine + 1] - job.groups[mine] + kRows - 1) / kRows : 0;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffU, sum, step);
      if (lane >= step) sum += other;
    }
    if (mine < job.group_count) first[mine + 1] = before + sum;
    before += __shfl_sync(0xffffffffU, sum, 31);
  }
  if (lane == 0) first[0] = 0;
}

}  // namespace qkv::kernels::cuda

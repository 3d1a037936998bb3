// Which tiles of outputs a product of many rows has, and in which order they are taken.
#pragma once

#include "kernels/cuda/products/product_finish.h"

namespace qkv::kernels::cuda {

constexpr int kTileRows = 128, kDepth = 64;  // of a tile, of a step along k
constexpr int kBand = 8;  // rows of tiles taken together, so that neighbours share what is in the cache
constexpr int kMostGroups = 256;

// Division of numbers below 2^31 by one that is known before, in three instructions.
struct Divider {
  uint32_t factor = 1, shift = 0;

  Divider() = default;
  explicit Divider(uint64_t divisor) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    factor = static_cast<uint32_t>((((uint64_t{1} << shift) - divisor) << 32) / divisor + 1);
  }
  __device__ int operator()(int x) const {
    const auto u = static_cast<uint32_t>(x);
    return static_cast<int>((__umulhi(u, factor) + u) >> shift);
  }
};

// One of the products of a launch: it has rows of its own if they are `stacked`, else columns.
struct Member {
  Target target;
  int first = INT32_MAX;  // row or column, counted over whole tiles of all
  int m = 0;
};

struct Job {
  FinishArgs finish;
  Member members[kMostInSet];
  bool stacked = false;
  int k = 0;
  int tile_columns = 128;
  int rows = 0, columns = 0;    // of tiles, of all members
  int pieces = 1, piece_k = 0;  // k cut into pieces, whole outputs of each behind one another
  Divider by_piece, by_band;    // tiles of a piece or group of k, of a band
  const int32_t* groups = nullptr;
  int group_count = 1;
  ProductArgs::Grouped grouped = ProductArgs::Grouped::none;
  int part_steps[kMostInSet] = {};  // along k, of each pair of operands
  int more_steps = 0;               // of all but the first
  int64_t next_out = 0;             // bytes from the output of one group or piece to the next
  bool backwards = false;           // from the last tile to the first
  int64_t next_sums = 0;            // numbers from the sums of one piece to the next
};

struct Tile {
  int m, end_m, n;  // rows and first column
  int member;
  int group;              // or piece
  int first_k, steps, k;  // of the last step only the numbers below k count
};

// With groups of rows, first[g] is the first row of tiles of group g.
struct TileList {
  const Job& job;
  const int* first;
  int count;

  __device__ TileList(const Job& j, const int* first_rows) : job(j), first(first_rows) {
    count = by_rows() ? first[j.group_count] * j.columns : j.rows * j.columns * (by_inner() ? j.group_count : j.pieces);
  }
  __device__ bool by_rows() const { return job.grouped == ProductArgs::Grouped::rows; }
  __device__ bool by_inner() const { return job.grouped == ProductArgs::Grouped::inner; }

  // Of k: where a group or piece begins and ends. There is always a step, so that empty groups have sums of zero.
  __device__ int2 range(int which) const {
    if (by_inner()) return {job.groups[which], job.groups[which + 1]};
    return {which * job.piece_k, min((which + 1) * job.piece_k, job.k)};
  }
  __device__ int steps_of(int2 range) const {
    return max((range.y - range.x + kDepth - 1) / kDepth, 1) + job.more_steps;
  }
  __device__ int steps(int t) const {
    if (job.backwards) t = count - 1 - t;
    return steps_of(by_rows() ? int2{0, job.k} : range(job.by_piece(t)));
  }

  // Row and column of tile t of `high` rows of tiles.
  __device__ int2 place(int t, int high) const {
    const int band = job.by_band(t), i = t - band * kBand * job.columns, some = min(kBand, high - band * kBand);
    const int column = some == kBand ? i / kBand : i / some;
    return {(band * kBand + i - column * some) * kTileRows, column * job.tile_columns};
  }

  __device__ Tile operator()(int t) const {
    if (job.backwards) t = count - 1 - t;
    if (by_rows()) {
      int low = 0, end = job.group_count;  // the last group whose first row of tiles is not after t
      while (end - low > 1) {
        const int middle = (low + end) / 2;
        (first[middle] * job.columns <= t ? low : end) = middle;
      }
      const int2 at = place(t - first[low] * job.columns, first[low + 1] - first[low]);
      return {job.groups[low] + at.x, job.groups[low + 1], at.y, 0, low, 0, steps_of({0, job.k}), job.k};
    }
    const int which = job.by_piece(t);
    int2 at = place(t - which * job.rows * job.columns, job.rows);
    const int2 of = range(which);
    int& along = job.stacked ? at.x : at.y;
    int member = 0;
    for (int i = 1; i < int{kMostInSet}; ++i) member += along >= job.members[i].first;
    along -= job.members[member].first;
    return {at.x, job.members[member].m, at.y, member, which, of.x, steps_of(of), of.y};
  }
};

// first[g] = rows of tiles of the groups before g, by one warp.
__device__ inline void count_group_tiles(const Job& job, int* first) {
  int before = 0;
  const int lane = static_cast<int>(threadIdx.x);
  for (int g = 0; g < job.group_count; g += 32) {
    const int mine = g + lane;
    int sum = mine < job.group_count ? (job.groups[mine + 1] - job.groups[mine] + kTileRows - 1) / kTileRows : 0;
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

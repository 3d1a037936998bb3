// Packed sequences cut into tiles of rows and of keys, on the device, where the list of segments is. A tile belongs to
// one segment, or to none where the list is out of order: then a tile of keys asks every segment.
#pragma once

#include <cstdint>

#include "kernels/cuda/access.h"

namespace qkv::kernels::cuda {

inline constexpr int kBlock = 64;  // rows and keys meet in blocks of 64 x 64

// Packed sequences of up to so many rows and keys have kernels of their own, forward and back.
inline constexpr int kShort = 2 * kBlock;
inline bool all_short(const AttentionInput& in) {
  return in.packed && in.longest_rows <= kShort && in.longest_keys <= kShort;
}

// Which keys a position sees, and which positions see a key: both are intervals.
struct Sight {
  bool causal = false;
  int64_t window = 0, chunk = 0;  // 0: all

  struct Interval {
    int begin, end;
  };
  // Within [0, count), counted from `origin`.
  static __device__ Interval clipped(int64_t begin, int64_t end, int64_t origin, int count) {
    const int64_t most = count, b = begin - origin, e = end - origin;
    const int64_t first = b < 0 ? 0 : b > most ? most : b, last = e < first ? first : e > most ? most : e;
    return {static_cast<int>(first), static_cast<int>(last)};
  }
  __device__ Interval keys_of(int64_t position, int keys) const {
    const int64_t reach = window > 0 ? window : int64_t{1} << 40;
    int64_t begin = position - reach + 1, end = causal ? position + 1 : position + reach;
    if (chunk > 0) {
      const int64_t first = position / chunk * chunk;
      begin = begin > first ? begin : first;
      end = end < first + chunk ? end : first + chunk;
    }
    return clipped(begin, end, 0, keys);
  }
  // As indices of the rows of a segment whose first row is at `position`.
  __device__ Interval rows_of(int64_t key, int64_t position, int rows) const {
    const int64_t reach = window > 0 ? window : int64_t{1} << 40;
    int64_t begin = causal ? key : key - reach + 1, end = key + reach;
    if (chunk > 0) {
      const int64_t first = key / chunk * chunk;
      begin = begin > first ? begin : first;
      end = end < first + chunk ? end : first + chunk;
    }
    return clipped(begin, end, position, rows);
  }
};

// Blocks of the other side that see something of a tile, or are seen.
struct BlockRange {
  int begin, end;
  __device__ int count() const { return end - begin; }
};
__device__ inline BlockRange blocks_over(int begin, int end) {
  return begin < end ? BlockRange{begin / kBlock, (end + kBlock - 1) / kBlock} : BlockRange{0, 0};
}

struct alignas(16) RowTile {
  int first, rows, at;  // row of q, how many, index of the first in its segment
  int first_key, keys, position, segment;
  int block;  // of the tile's first row, among all blocks of rows
  BlockRange blocks;
  int spare[2];
};

// A segment as a tile of keys sees it.
struct Asking {
  int at, keys;  // index of the tile's first key in the segment; of how many
  int first_row, rows, position, segment;
  int first_block;  // of the segment's rows, among all blocks of rows
  BlockRange blocks;
};
struct alignas(16) KeyTile {
  int first, keys;  // key, how many
  int segments;     // 1; or all of them where keys overlap
  Asking asking;    // if one
};

// The query heads of a key head.
struct alignas(16) HeadGroup {
  int count, start;  // from heads[start] on
  int first;         // heads[start]
  int spare;
};

struct TilePlan {
  int* counts;         // tiles of rows, tiles of keys
  int* taken;          // of both: tasks given to blocks, beyond the first of each
  RowTile* row_tiles;  // the last rows of a segment first: they see most
  KeyTile* key_tiles;
  int* first_blocks;  // [n]
  HeadGroup* groups;  // [G]
  int* heads;         // [H]: query heads in order of their key heads
  int most_row_tiles, most_key_tiles, tile_rows;
  int64_t bytes;

  __device__ int head(const HeadGroup& group, int i) const { return i == 0 ? group.first : heads[group.start + i]; }
  __host__ __device__ int64_t blocks() const { return int64_t{most_row_tiles} * (tile_rows / kBlock); }
};

// Segment n of those a tile of keys belongs to: mostly there is one.
__device__ inline Asking asking(const View& segments, const TilePlan& plan, const KeyTile& tile, int n) {
  if (tile.segments == 1) return tile.asking;
  const int32_t* s = reinterpret_cast<const int32_t*>(segments.data) + 6 * n;
  const bool touched = tile.first < s[3] + s[4] && tile.first + tile.keys > s[3];
  return {.at = tile.first - s[3],
          .keys = s[4],
          .first_row = s[1],
          .rows = s[2],
          .position = s[5],
          .segment = n,
          .first_block = plan.first_blocks[n],
          .blocks = blocks_over(0, touched ? s[2] : 0)};
}

// Where gradients of rows and keys of no segment are set to zero.
struct GradientViews {
  GradView dq, dk, dv;
  View delta;
};

// The plan's place at `base`; tiles of rows have `tile_rows` rows. Then the kernel that makes it.
TilePlan place_plan(std::byte* base, const AttentionInput& in, int tile_rows);
void make_plan(const Exec& exec, const AttentionInput& in, const GradientViews& out, const TilePlan& plan);

}  // namespace qkv::kernels::cuda

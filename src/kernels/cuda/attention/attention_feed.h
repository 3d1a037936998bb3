// Tiles of attention in shared memory: which rows and head a block of threads has, and how queries, keys and values
// get there.
#pragma once

#include "kernels/cuda/attention/attention_tile.h"

namespace qkv::kernels::cuda {

inline constexpr int kStages = 3, kTileRows = 128;

// kGroups warpgroups a block, kEach blocks a multiprocessor. kEarly: the next scores are under way during the softmax.
template <int kW, int kWarpgroups, int kBlocksEach, bool kCounts, bool kOpts, bool kEarlyScores, bool kDropout = false>
struct Config {
  static constexpr int kWidth = kW, kGroups = kWarpgroups, kEach = kBlocksEach, kRows = 64 * kGroups;
  static_assert(kRows <= kTileRows);
  static constexpr bool kStats = kCounts, kOptions = kOpts, kEarly = kEarlyScores, kDrop = kDropout;
  static_assert(!kDrop || (!kStats && !kOptions));
  static constexpr int kPanels = kWidth / 64, kTile = kPanels * kPanel;
  static constexpr int kClasses = kStats ? kKeyBlock * kClassBytes : 0, kStage = 2 * kTile + kClasses;
  static constexpr int kQueries = kGroups * kTile, kKeptEach = kWidth / 2 + (kStats ? 12 : 4),
                       kKept = kGroups * 128 * kKeptEach * 4;
  static constexpr int kThreads = kGroups * 128;
  static constexpr int kShared = kQueries + kStages * kStage + kKept + 128 + 1024;
};

struct Maps {
  CUtensorMap q, k, v;
  int box_rows;  // of k and v
  const uint4*
      classes;  // null, or of each key a row of bf16 with a one where its class is; kKeyBlock empty ones follow
};

// Which rows and head a block works on. Where all segments seem to have one length, causal tiles with the most keys
// come first among the (sequence, head) pairs whose keys fit into the cache together.
struct Order {
  int tiles, per_sequence, pairs_at_once;  // per_sequence 0: rows in order
};
struct TileAt {
  int tile, head;
};
__device__ inline TileAt tile_at(const Order& o, int heads, int i) {
  if (o.per_sequence == 0) return {i % o.tiles, i / o.tiles};
  const int pairs = o.tiles / o.per_sequence * heads, group = i / (o.pairs_at_once * o.per_sequence);
  const int first = group * o.pairs_at_once, some = min(o.pairs_at_once, pairs - first);
  const int in_group = i - first * o.per_sequence, pair = first + in_group % some;
  return {pair / heads * o.per_sequence + o.per_sequence - 1 - in_group / some, pair % heads};
}

// The segments a tile touches, which of its rows they have, and how many are done with a stage.
struct TileSegments {
  int list[kTileRows], count, done[kStages];
  uint32_t covered[kTileRows / 32];
};

// A tile goes through the keys of one segment, and then of the next.
struct Visit {
  int pass, index;  // of the tile's segments, and of all
  FastSegment segment;
  SeenKeys blocks;  // of keys that some row of the tile sees
};

// Of one block of threads: finds the segments its rows touch, and brings their keys and values in blocks of 64. The
// last warpgroup to be done with a block calls for the one that comes into its place.
template <class C>
class Feed {
 public:
  __device__ Feed(const FastAttention& f, const Maps& maps, const TileAt& at, uint8_t* raw, TileSegments& found)
      : f_(f),
        maps_(maps),
        found_(found),
        thread_(static_cast<int>(threadIdx.x)),
        first_row_(at.tile * C::kRows),
        kv_head_(f.kv_map[at.head]),
        queries_((shared_address(raw) + 1023) & ~1023U) {}

  // Calls for the queries, and meanwhile finds the segments and calls for the first keys.
  __device__ void begin(int head) {
    if (thread_ == 0) {
      barrier_init(barriers(), 1);
      for (int s = 0; s < kStages; ++s) {
        barrier_init(keys_full(s), 1);
        barrier_init(values_full(s), 1);
        found_.done[s] = 0;
      }
      fence_for_barriers();
      found_.count = 0;
      barrier_expect(barriers(), C::kQueries);
      for (int i = 0; i < C::kGroups * C::kPanels; ++i) {
        load_tile(queries_ + i * kPanel, &maps_.q, 64 * (i % C::kPanels), head, first_row_ + 64 * (i / C::kPanels),
                  barriers());
      }
    }
    if (thread_ < C::kRows / 32) found_.covered[thread_] = 0;
    __syncthreads();
    for (int n = thread_; n < f_.segment_count; n += C::kThreads) {
      const FastSegment s = fast_segment(f_, n);
      const int from = max(s.first_row - first_row_, 0), to = min(s.first_row + s.rows - first_row_, C::kRows);
      if (from >= to) continue;
      if (s.rows >= f_.few) found_.list[atomicAdd(&found_.count, 1)] = n;
      for (int w = from / 32; w <= (to - 1) / 32; ++w) {
        const int low = max(from - 32 * w, 0), high = min(to - 32 * w, 32);
        atomicOr(&found_.covered[w], (~0U >> (32 - (high - low))) << low);
      }
    }
    __syncthreads();
    if (thread_ == 0) {
      Visit none{};
      none.pass = -1;
      for (int s = 0; s < kStages; ++s) call_after(none, s, s);
    }
    __syncwarp();
    barrier_wait(barriers(), 0);
  }

  __device__ uint32_t queries() const { return queries_; }
  __device__ uint32_t keys(int s) const { return queries_ + C::kQueries + s * C::kStage; }
  __device__ uint32_t values(int s) const { return keys(s) + C::kTile; }
  __device__ uint32_t classes(int s) const { return values(s) + C::kTile; }
  __device__ int stage() const { return stage_; }
  __device__ void wait_for_keys() const { barrier_wait(keys_full(stage_), phase_); }
  __device__ int next_stage() const { return stage_ + 1 < kStages ? stage_ + 1 : 0; }
  __device__ void wait_for_next_keys() const {
    barrier_wait(keys_full(next_stage()), stage_ + 1 < kStages ? phase_ : phase_ ^ 1);
  }
  __device__ void wait_for_values() const { barrier_wait(values_full(stage_), phase_); }

  __device__ Visit visit(int pass) const {
    Visit at{.pass = pass, .index = found_.list[pass]};
    at.segment = fast_segment(f_, at.index);
    const FastSegment& s = at.segment;
    at.blocks = blocks_of(f_, s, max(first_row_, s.first_row), min(first_row_ + C::kRows, s.first_row + s.rows) - 1);
    return at;
  }
  // Done with block b of a segment, as one warpgroup. Classes are read by each warp itself, the rest by products of the
  // warpgroup: then each warp says so.
  __device__ __forceinline__ void release(const Visit& at, int b) {
    constexpr int kEach = C::kStats ? 32 : 128;  // threads
    if (C::kStats) {
      __threadfence_block();
      __syncwarp();
    }
    if (thread_ % kEach == 0 && atomicAdd(&found_.done[stage_], 1) == C::kThreads / kEach - 1) {
      found_.done[stage_] = 0;
      if (b + kStages < at.blocks.end) {
        call(at.segment, at.index, b + kStages, stage_);
      } else {
        call_after(at, b + kStages - at.blocks.end, stage_);
      }
    }
    __syncwarp();  // wgmma wants whole warps
    stage_ = next_stage();
    if (stage_ == 0) phase_ ^= 1;
  }
  __device__ __forceinline__ void skip(const Visit& at, int from, int to) {
    for (int b = from; b < to; ++b) {
      wait_for_keys();
      wait_for_values();
      // No product holds the warps together here: one that lags behind a release would miss a phase of the barriers.
      warpgroup_sync(thread_ / 128);
      release(at, b);
    }
  }

 private:
  __device__ uint32_t barriers() const { return queries_ + C::kQueries + kStages * C::kStage + C::kKept; }
  __device__ uint32_t keys_full(int s) const { return barriers() + 8 + 8 * s; }
  __device__ uint32_t values_full(int s) const { return barriers() + 8 + 8 * kStages + 8 * s; }

  // Calls for the keys and values of a block.
  __device__ void call(const FastSegment& s, int n, int b, int stage) const {
    const bool counts = C::kStats && maps_.classes != nullptr;
    barrier_expect(keys_full(stage), C::kTile);
    barrier_expect(values_full(stage), C::kTile + (counts ? C::kClasses : 0));
    for (int r = 0; r < kKeyBlock; r += maps_.box_rows) {  // what lies outside arrives as zeros
      const int key = b * kKeyBlock + r, row = key < s.keys ? key_row(f_, s, n, key) : f_.key_rows;
      const auto load = [&](uint32_t to, const CUtensorMap& map, uint32_t barrier) {
        for (int p = 0; p < C::kPanels; ++p) load_tile(to + p * kPanel + r * 128, &map, 64 * p, kv_head_, row, barrier);
      };
      load(keys(stage), maps_.k, keys_full(stage));
      load(values(stage), maps_.v, values_full(stage));
      if (counts) {
        const int from = row >= 0 && row < f_.key_rows ? row : f_.key_rows;  // a page that no row sees may be gone
        load_bytes(classes(stage) + r * kClassBytes, maps_.classes + from, maps_.box_rows * kClassBytes,
                   values_full(stage));
      }
    }
  }
  // Of the block that comes `ahead` blocks after the end of a visit, if there is one.
  __device__ void call_after(Visit at, int ahead, int stage) const {
    while (at.pass + 1 < found_.count) {
      at = visit(at.pass + 1);
      const int count = at.blocks.end - at.blocks.begin;
      if (ahead < count) return call(at.segment, at.index, at.blocks.begin + ahead, stage);
      ahead -= count;
    }
  }

  const FastAttention& f_;
  const Maps& maps_;
  TileSegments& found_;
  const int thread_, first_row_, kv_head_;
  const uint32_t queries_;
  int stage_ = 0;
  uint32_t phase_ = 0;
};

}  // namespace qkv::kernels::cuda

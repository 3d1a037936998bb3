#include "kernels/cuda/attention/attention_scores.h"
#include "kernels/cuda/attention/attention_tiles.h"

namespace qkv::kernels::cuda {
namespace {

// Each block counts all tiles and writes those of its share of the segments: a warp has one segment at a time.
constexpr int kPlanThreads = 512, kPlanWarps = kPlanThreads / 32, kShares = 32;
static_assert(kPlanWarps * kShares == kPlanThreads);

struct Planning {
  TilePlan plan;
  View segments, kv_map;
  GradientViews out;
  Sight sight;
  int count, rows, keys, heads, kv_heads;

  __device__ SegmentView segment(int n) const {
    const int32_t* s = reinterpret_cast<const int32_t*>(segments.data) + 6 * n;
    return {s[1], s[2], s[3], s[4], s[5]};
  }
};

struct Order {
  bool rows, keys;  // each segment begins where the one before has ended, or later
};
__device__ Order order_of(const Planning& p) {
  bool rows = true, keys = true;
  for (int n = static_cast<int>(threadIdx.x) + 1; n < p.count; n += kPlanThreads) {
    const SegmentView before = p.segment(n - 1), s = p.segment(n);
    rows = rows && s.first_row >= before.first_row + before.rows;
    keys = keys && s.first_key >= before.first_key + before.keys;
  }
  return {__syncthreads_and(rows) != 0, __syncthreads_and(keys) != 0};
}

// The sum of x over the threads before this one, and over all.
struct Scan {
  int before, all;
};
__device__ Scan scan(int x) {
  __shared__ int sums[kPlanWarps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int up_to = x;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const int other = __shfl_up_sync(0xffffffffU, up_to, by);
    if (lane >= by) up_to += other;
  }
  __syncthreads();  // the last one's readers are done
  if (lane == 31) sums[warp] = up_to;
  __syncthreads();
  int before = 0, all = 0;
  for (int w = 0; w < kPlanWarps; ++w) {
    if (w == warp) before = all;
    all += sums[w];
  }
  return {before + up_to - x, all};
}

__device__ int tiles_of(int64_t numbers, int each) {
  return static_cast<int>((numbers + each - 1) / each);
}

// Where tiles of a segment go in the list: the first sees or is seen by most. Segment after segment, so that blocks that
// run together read the same numbers; or, where there are few tasks, the first of each segment first, since the last
// tasks should be short.
struct Places {
  const int* starts;  // of each segment, one after the other, and the end
  int n, count;
  bool few;

  __device__ int start() const { return starts[n]; }
  __device__ int of(int tile) const {
    if (!few) return starts[n] + tile;
    int at = 0;
    for (int other = 0; other < count; ++other) {
      const int tiles = starts[other + 1] - starts[other];
      at += min(tiles, other < n ? tile + 1 : tile);
    }
    return at;
  }
};

// f(n, places, lane) for the segments of this block's share, by a warp each; tiles(segment) is how many one has. Returns
// the number of all.
template <class Tiles, class F>
__device__ int each_share(const Planning& p, int heads, const Tiles& tiles, const F& f) {
  constexpr int kFewTasks = 1024, kFewSegments = 64;
  __shared__ int starts[kPlanThreads + 1];
  int done = 0;
  for (int first = 0; first < p.count; first += kPlanThreads) {
    const int n = first + static_cast<int>(threadIdx.x);
    const Scan counted = scan(n < p.count ? tiles(p.segment(n)) : 0);
    starts[threadIdx.x] = done + counted.before;
    if (threadIdx.x == 0) starts[kPlanThreads] = done + counted.all;
    __syncthreads();
    const bool few = p.count <= kFewSegments && counted.all * heads <= kFewTasks;
    const int mine = static_cast<int>(blockIdx.x) + kShares * (static_cast<int>(threadIdx.x) / 32);
    const Places places{starts, mine, p.count, few};
    if (first + mine < p.count) f(first + mine, places, static_cast<int>(threadIdx.x) % 32);
    done += counted.all;
  }
  return done;
}

__device__ void plan_rows(const Planning& p) {
  const int height = p.plan.tile_rows;
  const auto tiles = [&](const SegmentView& s) { return tiles_of(s.rows, height); };
  const int all = each_share(p, p.heads, tiles, [&](int n, const Places& places, int lane) {
    const SegmentView s = p.segment(n);
    const int count = tiles(s), keys = static_cast<int>(s.keys), first_block = places.start() * (height / kBlock);
    if (lane == 0) p.plan.first_blocks[n] = first_block;
    for (int t = lane; t < count; t += 32) {
      const int at = t * height, rows = min(height, static_cast<int>(s.rows) - at);
      const int64_t position = s.position + at;
      p.plan.row_tiles[places.of(count - 1 - t)] = {
          .first = static_cast<int>(s.first_row) + at,
          .rows = rows,
          .at = at,
          .first_key = static_cast<int>(s.first_key),
          .keys = keys,
          .position = static_cast<int>(s.position),
          .segment = n,
          .block = first_block + at / kBlock,
          .blocks = blocks_over(p.sight.keys_of(position, keys).begin, p.sight.keys_of(position + rows - 1, keys).end)};
    }
  });
  if (blockIdx.x == 0 && threadIdx.x == 0) p.plan.counts[0] = all;
  __syncthreads();  // this share's first_blocks
}

__device__ void plan_keys(const Planning& p) {
  const auto tiles = [&](const SegmentView& s) { return tiles_of(s.keys, kBlock); };
  const int all = each_share(p, p.kv_heads, tiles, [&](int n, const Places& places, int lane) {
    const SegmentView s = p.segment(n);
    const int rows = static_cast<int>(s.rows);
    for (int t = lane; t * kBlock < s.keys; t += 32) {
      const int at = t * kBlock, keys = min(kBlock, static_cast<int>(s.keys) - at);
      p.plan.key_tiles[places.of(t)] = {
          .first = static_cast<int>(s.first_key) + at,
          .keys = keys,
          .segments = 1,
          .asking = {.at = at,
                     .keys = static_cast<int>(s.keys),
                     .first_row = static_cast<int>(s.first_row),
                     .rows = rows,
                     .position = static_cast<int>(s.position),
                     .segment = n,
                     .first_block = p.plan.first_blocks[n],
                     .blocks = blocks_over(p.sight.rows_of(at, s.position, rows).begin,
                                           p.sight.rows_of(at + keys - 1, s.position, rows).end)}};
    }
  });
  if (blockIdx.x == 0 && threadIdx.x == 0) p.plan.counts[1] = all;
}

// Where segments share keys: tiles at multiples of 64, of all segments.
__device__ void plan_shared_keys(const Planning& p) {
  const int tiles = tiles_of(p.keys, kBlock);
  for (int i = static_cast<int>(blockIdx.x * kPlanThreads + threadIdx.x); i < tiles; i += kShares * kPlanThreads) {
    p.plan.key_tiles[i] = {.first = i * kBlock, .keys = min(kBlock, p.keys - i * kBlock), .segments = p.count};
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) p.plan.counts[1] = tiles;
}

__device__ void plan_heads(const Planning& p) {
  for (int h = static_cast<int>(threadIdx.x); h < p.heads; h += kPlanThreads) {
    const int32_t mine = p.kv_map.id(h);
    int start = 0, before = 0, count = 0;
    for (int other = 0; other < p.heads; ++other) {
      const int32_t its = p.kv_map.id(other);
      start += its < mine ? 1 : 0;
      count += its == mine ? 1 : 0;
      before += its == mine && other < h ? 1 : 0;
    }
    p.plan.heads[start + before] = h;
    if (before == 0) p.plan.groups[mine] = {.count = count, .start = start, .first = h};
  }
  for (int g = static_cast<int>(threadIdx.x); g < p.kv_heads; g += kPlanThreads) {  // those no head reads
    bool read = false;
    for (int h = 0; h < p.heads; ++h) read = read || p.kv_map.id(h) == g;
    if (!read) p.plan.groups[g] = {};
  }
}

// By a block: a row for each warp.
__device__ void clear(const GradView& grad, int64_t first, int64_t end) {
  if (!grad || grad.add) return;
  const View& v = grad.view;
  for (int64_t r = first + threadIdx.x / 32; r < end; r += kPlanWarps) {
    for (int64_t h = 0; h < v.dims[1]; ++h) {
      for (int64_t c = threadIdx.x % 32; c < v.dims[2]; c += 32) v.set(v.at(r, h, c), 0.0F);
    }
  }
}
__device__ void clear_rows(const GradientViews& out, int64_t first, int64_t end) {
  if (first >= end) return;
  clear(out.dq, first, end);
  const int64_t heads = out.delta ? out.delta.dims[1] : 0;
  for (int64_t i = first * heads + threadIdx.x; i < end * heads; i += kPlanThreads) {
    out.delta.set(out.delta.at(i / heads, i % heads), 0.0F);
  }
}
__device__ void clear_keys(const GradientViews& out, int64_t first, int64_t end) {
  if (first >= end) return;
  clear(out.dk, first, end);
  clear(out.dv, first, end);
}

// Rows and keys between segments; gap n is the one before segment n. Every 32nd is this block's.
__device__ void clear_gaps(const Planning& p, Order order) {
  const int block = static_cast<int>(blockIdx.x);
  __shared__ int gaps[kPlanThreads][4];  // of rows: first, end; of keys
  for (int first = block; first <= p.count; first += kShares * kPlanThreads) {
    const int n = first + static_cast<int>(threadIdx.x) * kShares;
    __syncthreads();
    if (n <= p.count) {
      const SegmentView before = n > 0 ? p.segment(n - 1) : SegmentView{};
      const SegmentView after = n < p.count ? p.segment(n) : SegmentView{.first_row = p.rows, .first_key = p.keys};
      int(&gap)[4] = gaps[threadIdx.x];
      gap[0] = static_cast<int>(before.first_row + before.rows);
      gap[1] = static_cast<int>(order.rows ? after.first_row : 0);
      gap[2] = static_cast<int>(before.first_key + before.keys);
      gap[3] = static_cast<int>(order.keys ? after.first_key : 0);
    }
    __syncthreads();
    for (int i = 0; i < kPlanThreads && first + i * kShares <= p.count; ++i) {
      clear_rows(p.out, gaps[i][0], gaps[i][1]);
      clear_keys(p.out, gaps[i][2], gaps[i][3]);
    }
  }
  // Without an order: rows one by one. Every tile of keys is written anyway.
  for (int r = block; r < p.rows && !order.rows; r += kShares) {
    bool taken = false;
    for (int n = 0; n < p.count && !taken; ++n) {
      const SegmentView s = p.segment(n);
      taken = r >= s.first_row && r < s.first_row + s.rows;
    }
    if (!taken) clear_rows(p.out, r, r + 1);
  }
}

__global__ void __launch_bounds__(kPlanThreads, 1) plan_tiles(const __grid_constant__ Planning p) {
  wait_for_last();
  const Order order = order_of(p);
  if (blockIdx.x == 0) {
    if (threadIdx.x < 2) p.plan.taken[threadIdx.x] = 0;
    plan_heads(p);
  }
  plan_rows(p);
  order.keys ? plan_keys(p) : plan_shared_keys(p);
  clear_gaps(p, order);
}

}  // namespace

TilePlan place_plan(std::byte* base, const AttentionInput& in, int tile_rows) {
  const int64_t n = in.segments.dim(0), rows = in.q.dim(0), keys = in.k.dim(0);
  TilePlan plan{};
  plan.tile_rows = tile_rows;
  plan.most_row_tiles = static_cast<int>((rows + n * (tile_rows - 1)) / tile_rows);
  plan.most_key_tiles = static_cast<int>((keys + (n + 1) * (kBlock - 1)) / kBlock);
  const auto place = [&]<class T>(T*& part, int64_t count) {
    part = reinterpret_cast<T*>(base + plan.bytes);
    plan.bytes += (count * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16;
  };
  place(plan.counts, 2);
  place(plan.taken, 2);
  place(plan.row_tiles, plan.most_row_tiles);
  place(plan.key_tiles, plan.most_key_tiles);
  place(plan.first_blocks, n);
  place(plan.groups, in.k.dim(1));
  place(plan.heads, in.q.dim(1));
  return plan;
}

void make_plan(const Exec& exec, const AttentionInput& in, const GradientViews& out, const TilePlan& plan) {
  const Planning p{.plan = plan,
                   .segments = View(in.segments),
                   .kv_map = View(in.kv_map),
                   .out = out,
                   .sight = {.causal = in.causal, .window = in.window, .chunk = in.chunk},
                   .count = static_cast<int>(in.segments.dim(0)),
                   .rows = static_cast<int>(in.q.dim(0)),
                   .keys = static_cast<int>(in.k.dim(0)),
                   .heads = static_cast<int>(in.q.dim(1)),
                   .kv_heads = static_cast<int>(in.k.dim(1))};
  launch(exec, plan_tiles, kShares, kPlanThreads, 0, p);
}

}  // namespace qkv::kernels::cuda

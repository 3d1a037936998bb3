// Attention of bf16 in tiles: a warpgroup takes 64 rows of q and one head, wgmma multiplies, the copy engine brings
// blocks of keys and values, asked for by whichever warpgroup is the last to be done with the block before. Order of
// sums: attention_fast.h.
//
// Tiles lie at fixed rows of q, whatever the segments: a tile finds the segments it touches and goes through the keys
// of each. So the grid follows from shapes alone, and rows of no segment are blanked on the way.
#include "kernels/cuda/attention_fast.h"
#include "kernels/cuda/attention_wgmma.h"
#include "kernels/cuda/tma.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kPanel = 64 * 128;  // bytes of 64 rows of 64 numbers
constexpr int kStages = 2;

// kGroups warpgroups a block, kEach blocks a multiprocessor. kEarly: the next scores are under way during the softmax.
template <int kW, int kWarpgroups, int kBlocksEach, bool kCounts, bool kOpts, bool kEarlyScores>
struct Config {
  static constexpr int kWidth = kW, kGroups = kWarpgroups, kEach = kBlocksEach, kRows = 64 * kGroups;
  static constexpr bool kStats = kCounts, kOptions = kOpts, kEarly = kEarlyScores;
  static constexpr int kPanels = kWidth / 64, kTile = kPanels * kPanel, kStage = 2 * kTile;
  static constexpr int kQueries = kGroups * kTile, kKeptEach = kWidth / 2 + (kStats ? 14 : 4),
                       kKept = kGroups * 128 * kKeptEach * 4;
  static constexpr int kThreads = kGroups * 128;
  static constexpr int kShared = kQueries + kStages * kStage + kKept + 128 + 1024;
};

struct Maps {
  CUtensorMap q, k, v;
  int box_rows;  // of k and v
};

// Which rows and head a block works on. Where all segments seem to have one length, causal tiles with the most keys
// come first among the (sequence, head) pairs whose keys fit into the cache together.
struct Order {
  int tiles, per_sequence, pairs_at_once;  // per_sequence 0: rows in order
};
struct TileAt {
  int tile, head;
};
__device__ TileAt tile_at(const Order& o, int heads, int i) {
  if (o.per_sequence == 0) return {i % o.tiles, i / o.tiles};
  const int pairs = o.tiles / o.per_sequence * heads, group = i / (o.pairs_at_once * o.per_sequence);
  const int first = group * o.pairs_at_once, some = min(o.pairs_at_once, pairs - first);
  const int in_group = i - first * o.per_sequence, pair = first + in_group % some;
  return {pair / heads * o.per_sequence + o.per_sequence - 1 - in_group / some, pair % heads};
}

__device__ void load_box(uint32_t to, const CUtensorMap* map, int column, int head, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
          to),
      "l"(map), "r"(column), "r"(head), "r"(row), "r"(barrier)
      : "memory");
}
__device__ void warpgroup_sync(int group) {
  if (group == 0) {
    asm volatile("bar.sync 1, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 2, 128;" ::: "memory");
  }
}

// The two rows of a thread, 8 apart, in a segment.
struct RowPair {
  int row[2], position[2];
  bool valid[2];
  SeenKeys seen[2];
};

__device__ __forceinline__ void hide(float (&s)[32], const RowPair& r, int first_key, int quad) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first_key + 8 * j + 2 * quad + i % 2;
      if (key < r.seen[i / 2].begin || key >= r.seen[i / 2].end) s[4 * j + i] = kHidden;
    }
  }
}

// A store that the compiler does not turn into a choice among the registers of an array, which it would keep in memory.
__device__ void store_at(float* to, float value) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}

// Leaves the scores of single keys where their probabilities will be.
__device__ __forceinline__ void keep_single_keys(const FastAttention& f, const float (&s)[32], const RowPair& r, int head,
                                 int first_key, int quad) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int64_t at = static_cast<int64_t>(r.row[i]) * f.heads + head;
    if (f.first != nullptr && first_key == 0 && quad == 0 && r.valid[i]) f.first[at] = s[2 * i];
    for (int o = 0; o < f.offset_count; ++o) {
      const int key = r.position[i] - f.offsets[o] - first_key;
      if (!__any_sync(~0U, key >= 0 && key < kKeyBlock)) continue;
      const int mine = r.valid[i] ? key - 2 * quad : -1;
      float* to = f.at_offset + at * f.offset_count + o;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        if (mine == 8 * (j / 2) + j % 2) store_at(to, s[4 * (j / 2) + 2 * i + j % 2]);
      }
    }
  }
}

// Columns of class masses: the probabilities of 16 keys at a time against a one where the key has the class.
__device__ __forceinline__ void count_classes(const FastAttention& f, const FastSegment& s, int n, float (&mass)[4],
                              const uint32_t (&p)[4][4], int first_key, int lane) {
  constexpr uint32_t kOne = 0x3F80;
  const auto is = [&](int key) {
    return key < s.keys && f.key_classes[key_row(f, s, n, key)] == lane / 4 ? kOne : 0U;
  };
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int key = first_key + 16 * k + 2 * (lane % 4);
    mma(mass, p[k], is(key) | is(key + 1) << 16, is(key + 8) | is(key + 9) << 16);
  }
}

__device__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0U, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0U, x, 2));
}
__device__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0U, x, 1);
  return x + __shfl_xor_sync(~0U, x, 2);
}

// The span a warpgroup is in: two rows a thread, chains of even and odd keys.
template <class C>
struct Span {
  float highest[2] = {kHidden, kHidden};
  Chain<C::kStats> chain[2][2];
  int argmax[2] = {-1, -1};

  __device__ __forceinline__ RowSums sums(int i) const {
    const auto& even = chain[i][0];
    const auto& odd = chain[i][1];
    RowSums r{.highest = highest[i], .total = quad_sum(even.total + odd.total)};
    if (C::kStats) {
      r.log_mass = quad_sum(even.log_mass + odd.log_mass);
      r.distance = quad_sum(even.distance + odd.distance);
      r.argmax = argmax[i];
    }
    return r;
  }

  // Scores to probabilities; the columns so far are rescaled unless the span is fresh.
  __device__ __forceinline__ void soften(const FastAttention& f, float (&s)[32], float (&z)[C::kWidth / 2], float (&mass)[4],
                         const RowPair& r, int first_key, int quad, bool fresh) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float before = highest[i];
      float now = before;
#pragma unroll
      for (int j = 0; j < 8; ++j) now = fmaxf(now, fmaxf(s[4 * j + 2 * i], s[4 * j + 2 * i + 1]));
      now = quad_max(now);
      if (C::kStats && __any_sync(~0U, now > before)) {
        int best = INT32_MAX;
#pragma unroll
        for (int j = 7; j >= 0; --j) {
          if (s[4 * j + 2 * i + 1] == now) best = 8 * j + 1;
          if (s[4 * j + 2 * i] == now) best = 8 * j;
        }
        best = best == INT32_MAX ? best : best + first_key + 2 * quad;
        best = min(best, __shfl_xor_sync(~0U, best, 1));
        best = min(best, __shfl_xor_sync(~0U, best, 2));
        if (now > before) argmax[i] = best;
      }
      const float down = (before - now) * f.unit2, rescale = ex2(down);
      highest[i] = now;
      if (!fresh) {
#pragma unroll
        for (int j = 0; j < C::kWidth / 8; ++j) {
          z[4 * j + 2 * i] *= rescale;
          z[4 * j + 2 * i + 1] *= rescale;
        }
        if (C::kStats) {
          mass[2 * i] *= rescale;
          mass[2 * i + 1] *= rescale;
        }
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float p[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) p[j] = s[4 * j + 2 * i + e];
        const auto lag = static_cast<float>(r.position[i] - first_key - 2 * quad - e);
        chain[i][e].add(ChainBlock<C::kStats>(p, f.unit2, now, lag), down, rescale);
#pragma unroll
        for (int j = 0; j < 8; ++j) s[4 * j + 2 * i + e] = p[j];
      }
    }
  }
};

// What the spans before have summed lies in shared memory, where a thread sees only its own: columns of z first, then
// the sums of its two rows and four class masses.
template <class C>
struct Before {
  float* kept;
  bool any = false;

  __device__ float& at(int i) const { return kept[128 * i]; }
  __device__ float4& columns(int k) const { return reinterpret_cast<float4*>(kept - threadIdx.x % 128)[128 * k + threadIdx.x % 128]; }
  static constexpr int kSums = C::kWidth / 2, kEach = C::kStats ? 5 : 2, kMasses = kSums + 2 * kEach;

  __device__ __forceinline__ RowSums load(int i) const {
    if (!any) return {};
    const int from = kSums + kEach * i;
    RowSums s{.highest = at(from), .total = at(from + 1)};
    if (C::kStats) {
      s.log_mass = at(from + 2);
      s.distance = at(from + 3);
      s.argmax = __float_as_int(at(from + 4));
    }
    return s;
  }
  __device__ __forceinline__ void store(int i, const RowSums& s) const {
    const int from = kSums + kEach * i;
    at(from) = s.highest;
    at(from + 1) = s.total;
    if (C::kStats) {
      at(from + 2) = s.log_mass;
      at(from + 3) = s.distance;
      at(from + 4) = __int_as_float(s.argmax);
    }
  }

  // z, mass and the sums given back are those of all spans so far. The last span is not kept.
  __device__ __forceinline__ void merge_span(const Span<C>& span, RowSums (&sums)[2], float (&z)[C::kWidth / 2], float (&mass)[4],
                             float unit2, bool last) {
    MergeBy by[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sums[i] = load(i);
      by[i] = merge<C::kStats>(sums[i], span.sums(i), unit2);
      if (!last) store(i, sums[i]);
    }
    if (any) {
#pragma unroll
      for (int k = 0; k < C::kWidth / 8; ++k) {
        const float4 old = columns(k);
        z[4 * k] = fmaf(z[4 * k], by[0].span, old.x * by[0].total);
        z[4 * k + 1] = fmaf(z[4 * k + 1], by[0].span, old.y * by[0].total);
        z[4 * k + 2] = fmaf(z[4 * k + 2], by[1].span, old.z * by[1].total);
        z[4 * k + 3] = fmaf(z[4 * k + 3], by[1].span, old.w * by[1].total);
      }
      if (C::kStats) {
#pragma unroll
        for (int k = 0; k < 4; ++k) mass[k] = fmaf(mass[k], by[k / 2].span, at(kMasses + k) * by[k / 2].total);
      }
    }
    if (last) return;
#pragma unroll
    for (int k = 0; k < C::kWidth / 8; ++k) {
      columns(k) = make_float4(z[4 * k], z[4 * k + 1], z[4 * k + 2], z[4 * k + 3]);
    }
    if (C::kStats) {
#pragma unroll
      for (int k = 0; k < 4; ++k) at(kMasses + k) = mass[k];
    }
    any = true;
  }
};

// Key blocks [begin, end) of rows [first, last] of q in a segment.
__device__ SeenKeys blocks_of(const FastAttention& f, const FastSegment& s, int first, int last) {
  const SeenKeys low = seen_keys(f, s.keys, s.position + first - s.first_row),
                 high = seen_keys(f, s.keys, s.position + last - s.first_row);
  const int end = (high.end + kKeyBlock - 1) / kKeyBlock;
  return {min(low.begin / kKeyBlock, end), end};
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kEach)
    attend_tile(const __grid_constant__ Maps maps, const __grid_constant__ FastAttention f, const Order order,
                uint8_t* marks) {
  extern __shared__ uint8_t raw[];
  __shared__ int found[C::kRows], found_count, done[kStages];
  __shared__ uint32_t covered[C::kRows / 32];
  const uint32_t base = (shared_address(raw) + 1023) & ~1023U, stages = base + C::kQueries,
                 kept_at = stages + kStages * C::kStage, barriers = kept_at + C::kKept;
  const uint32_t queries_full = barriers;
  const auto keys_full = [&](int s) { return barriers + 8 + 8 * s; };
  const auto values_full = [&](int s) { return barriers + 8 + 8 * kStages + 8 * s; };
  const int thread = static_cast<int>(threadIdx.x), group = __shfl_sync(~0U, thread / 128, 0), lane = thread % 32;
  const TileAt at = tile_at(order, f.heads, static_cast<int>(blockIdx.x));
  const int first_row = at.tile * C::kRows, head = at.head, kv_head = f.kv_map[head];
  if (thread == 0) {
    barrier_init(queries_full, 1);
    for (int s = 0; s < kStages; ++s) {
      barrier_init(keys_full(s), 1);
      barrier_init(values_full(s), 1);
      done[s] = 0;
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    found_count = 0;
    barrier_expect(queries_full, C::kQueries);
    for (int g = 0; g < C::kGroups; ++g) {
      for (int p = 0; p < C::kPanels; ++p) {
        load_box(base + (g * C::kPanels + p) * kPanel, &maps.q, 64 * p, head, first_row + 64 * g, queries_full);
      }
    }
  }
  if (thread < C::kRows / 32) covered[thread] = 0;
  __syncthreads();
  for (int n = thread; n < f.segment_count; n += C::kThreads) {
    const FastSegment s = fast_segment(f, n);
    const int from = max(s.first_row - first_row, 0), to = min(s.first_row + s.rows - first_row, C::kRows);
    if (from >= to) continue;
    if (s.rows >= f.few) found[atomicAdd(&found_count, 1)] = n;
    for (int r = from; r < to; ++r) atomicOr(&covered[r / 32], 1U << r % 32);
  }
  __syncthreads();
  const int passes = found_count;

  const auto blocks_of_tile = [&](const FastSegment& s) {
    return blocks_of(f, s, max(first_row, s.first_row), min(first_row + C::kRows, s.first_row + s.rows) - 1);
  };
  // Calls for the keys and values `ahead` blocks after block b of a pass; the passes follow one another.
  const auto feed = [&](int pass, int b, int ahead, int to_stage) {
    int n = found[pass];
    FastSegment s = fast_segment(f, n);
    SeenKeys blocks = blocks_of_tile(s);
    b += ahead;
    while (b >= blocks.end) {
      b -= blocks.end;
      if (++pass == passes) return;
      n = found[pass];
      s = fast_segment(f, n);
      blocks = blocks_of_tile(s);
      b += blocks.begin;
    }
    const auto load = [&](uint32_t to, const CUtensorMap& map, uint32_t barrier) {
      barrier_expect(barrier, C::kTile);
      for (int r = 0; r < kKeyBlock; r += maps.box_rows) {  // what lies outside arrives as zeros
        const int key = b * kKeyBlock + r, row = key < s.keys ? key_row(f, s, n, key) : f.key_rows;
        for (int p = 0; p < C::kPanels; ++p) load_box(to + p * kPanel + r * 128, &map, 64 * p, kv_head, row, barrier);
      }
    };
    load(stages + to_stage * C::kStage, maps.k, keys_full(to_stage));
    load(stages + to_stage * C::kStage + C::kTile, maps.v, values_full(to_stage));
  };
  if (thread == 0 && passes > 0) {
    const int begin = blocks_of_tile(fast_segment(f, found[0])).begin;
    for (int s = 0; s < kStages; ++s) feed(0, begin, s, s);
  }

  int stage = 0;
  uint32_t phase = 0;
  const int warp = thread % 128 / 32, quad = lane % 4, group_row = first_row + 64 * group;
  float* kept = reinterpret_cast<float*>(raw + (kept_at - shared_address(raw))) + group * 128 * C::kKeptEach +
                thread % 128;
  const HeadOptions head_options(f, head);
  bool bad = false;
  barrier_wait(queries_full, 0);
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    const int n = found[pass];
    const FastSegment seg = fast_segment(f, n);
    const SeenKeys blocks = blocks_of_tile(seg);
    const int my_first = max(group_row, seg.first_row), my_last = min(group_row + 64, seg.first_row + seg.rows) - 1;
    SeenKeys mine{blocks.begin, blocks.begin}, whole{0, 0};  // my blocks; keys that all my rows see
    if (my_first <= my_last) {
      mine = blocks_of(f, seg, my_first, my_last);
      whole = {seen_keys(f, seg.keys, seg.position + my_last - seg.first_row).begin,
               seen_keys(f, seg.keys, seg.position + my_first - seg.first_row).end};
    }
    const auto release = [&](int b) {
      if (thread % 128 == 0 && atomicAdd(&done[stage], 1) == C::kGroups - 1) {
        done[stage] = 0;
        feed(pass, b, kStages, stage);
      }
      if (++stage == kStages) {
        stage = 0;
        phase ^= 1;
      }
    };
    const auto skip = [&](int from, int to) {
      for (int b = from; b < to; ++b) {
        barrier_wait(keys_full(stage), phase);
        barrier_wait(values_full(stage), phase);
        release(b);
      }
    };
    RowPair rows;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows.row[i] = group_row + 16 * warp + lane / 4 + 8 * i;
      rows.valid[i] = rows.row[i] >= my_first && rows.row[i] <= my_last;
      rows.position[i] = seg.position + rows.row[i] - seg.first_row;
      rows.seen[i] = rows.valid[i] ? seen_keys(f, seg.keys, rows.position[i]) : SeenKeys{0, 0};
    }
    float z[C::kWidth / 2], mass[4] = {};
    Span<C> span;
    Before<C> before{.kept = kept};
    RowSums sums[2];
    bool fresh = true;

    const auto find_scores = [&](float (&s)[32], int in_stage) {
      const uint32_t queries = base + group * C::kTile, keys = stages + in_stage * C::kStage;
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < C::kWidth / 16; ++k) {
        wgmma_scores(s, tile_descriptor(queries + k / 4 * kPanel, 16, 1024) + 2 * (k % 4),
                     tile_descriptor(keys + k / 4 * kPanel, 16, 1024) + 2 * (k % 4), k > 0);
      }
      wgmma_commit();
    };
    // Scores to probabilities, and those into the sums.
    const auto attend_block = [&](float (&s)[32], uint32_t (&p)[4][4], int b) {
      const int first_key = b * kKeyBlock;
      if (C::kOptions && f.options) {
#pragma unroll
        for (int k = 0; k < 32; ++k) {
          s[k] = head_options.logit(f, s[k], first_key + 8 * (k / 4) + 2 * quad + k % 2 - rows.position[k % 4 / 2]);
        }
      }
      if (first_key < whole.begin || first_key + kKeyBlock > whole.end) hide(s, rows, first_key, quad);
      if (C::kStats) keep_single_keys(f, s, rows, head, first_key, quad);
      span.soften(f, s, z, mass, rows, first_key, quad, fresh);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) p[k][i] = pack(s[8 * k + 2 * i], s[8 * k + 2 * i + 1]);
      }
      if (C::kStats && f.class_count > 0) count_classes(f, seg, n, mass, p, first_key, lane);
    };
    const auto add_values = [&](const uint32_t (&p)[4][4], int b) {
      const uint32_t values = stages + stage * C::kStage + C::kTile;
      barrier_wait(values_full(stage), phase);
      if (const int there = seg.keys - b * kKeyBlock; there < kKeyBlock) {  // what is not there may be no number
        for (int i = thread % 128 + 8 * there; i < 8 * kKeyBlock; i += 128) {
#pragma unroll
          for (int q = 0; q < C::kPanels; ++q) {
            asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(values + q * kPanel + 16 * i), "r"(0)
                         : "memory");
          }
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        warpgroup_sync(group);
      }
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma_values(z, p[k], tile_descriptor(values + k * 2048, kPanel, 1024), !fresh || k > 0);
      }
      wgmma_commit();
    };
    const auto end_block = [&](int b) {
      release(b);
      fresh = (b + 1) % kSpanBlocks == 0;
      if (fresh && b + 1 < mine.end) {
        before.merge_span(span, sums, z, mass, f.unit2, false);
        span = Span<C>();
        for (float& m : mass) m = 0;
      }
    };

    skip(blocks.begin, mine.begin);
    if (mine.begin == mine.end) {
#pragma unroll
      for (float& c : z) c = 0;
    } else if constexpr (C::kEarly) {
      float s[32];
      uint32_t p[4][4];
      barrier_wait(keys_full(stage), phase);
      find_scores(s, stage);
      wgmma_wait<0>();
#pragma unroll 1
      for (int b = mine.begin; b < mine.end - 1; ++b) {
        float s_next[32];
        barrier_wait(keys_full(stage ^ 1), phase ^ stage);
        find_scores(s_next, stage ^ 1);
        attend_block(s, p, b);
        add_values(p, b);
        wgmma_wait<0>();
        end_block(b);
#pragma unroll
        for (int k = 0; k < 32; ++k) s[k] = s_next[k];
      }
      attend_block(s, p, mine.end - 1);
      add_values(p, mine.end - 1);
      wgmma_wait<0>();
      end_block(mine.end - 1);
    } else {
#pragma unroll 1
      for (int b = mine.begin; b < mine.end; ++b) {
        float s[32];
        uint32_t p[4][4];
        barrier_wait(keys_full(stage), phase);
        find_scores(s, stage);
        wgmma_wait<0>();
        attend_block(s, p, b);
        add_values(p, b);
        wgmma_wait<0>();
        end_block(b);
      }
    }
    skip(mine.end, blocks.end);
    before.merge_span(span, sums, z, mass, f.unit2, true);

#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = rows.row[i];
      const float by = finish_row(f, sums[i], row, head, quad == 0 && rows.valid[i]);
      if (C::kStats) {
        __syncwarp();
        if (rows.valid[i]) {
          finish_single_keys(f, sums[i], by, row, head, rows.position[i], rows.seen[i], quad, 4);
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int c = 2 * quad + e;
            if (c < f.class_count) {
              f.in_class[(static_cast<int64_t>(row) * f.heads + head) * f.class_count + c] = mass[2 * i + e] * by;
            }
          }
        }
      }
      if (!rows.valid[i]) continue;
      __nv_bfloat16* out = f.z + row * f.z_row + head * f.z_head + 2 * quad;
#pragma unroll
      for (int j = 0; j < C::kWidth / 8; ++j) {
        const float low = z[4 * j + 2 * i] * by, high = z[4 * j + 2 * i + 1] * by;
        if (8 * j < f.value_width) {
          *reinterpret_cast<uint32_t*>(out + 8 * j) = pack(low, high);
          bad = bad || low != low || high != high;
        }
      }
    }
  }
  bad = __any_sync(~0U, bad);
  if (lane == 0) marks[((at.tile * C::kGroups + group) * 4 + warp) * static_cast<int64_t>(f.heads) + head] = bad;
  for (int r = 0; r < 16; ++r) {
    const int i = 64 * group + 16 * warp + r;
    if (first_row + i < f.rows && (covered[i / 32] >> i % 32 & 1) == 0) blank_row(f, first_row + i, head, lane);
  }
}

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// Boxes of 64 columns of one head by `box_rows` rows; columns and rows past the end are zeros.
bool make_map(CUtensorMap& map, const __nv_bfloat16* data, int width, int heads, int rows, int64_t head_stride,
              int64_t row_stride, int box_rows) {
  static const EncodeTiled encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return code == cudaSuccess ? reinterpret_cast<EncodeTiled>(found) : nullptr;
  }();
  const cuuint64_t dims[3] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(heads),
                              static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(head_stride) * 2, static_cast<cuuint64_t>(row_stride) * 2};
  const cuuint32_t box[3] = {64, 1, static_cast<cuuint32_t>(box_rows)}, steps[3] = {1, 1, 1};
  return encode != nullptr && encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<__nv_bfloat16*>(data), dims,
                                     strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <class C>
bool run(const Exec& exec, const FastAttention& f, const Maps& maps) {
  static const bool prepared =
      cudaFuncSetAttribute(attend_tile<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kShared) == cudaSuccess;
  if (!prepared) return false;
  Order order{.tiles = (f.rows + C::kRows - 1) / C::kRows};
  const int length = f.rows / f.segment_count;
  if (f.causal && f.rows % f.segment_count == 0 && length % C::kRows == 0) {
    constexpr int64_t kCacheBytes = 24 << 20;
    order.per_sequence = length / C::kRows;
    order.pairs_at_once = static_cast<int>(std::max<int64_t>(kCacheBytes / (int64_t{4} * length * C::kWidth), 1));
  }
  attend_tile<C><<<static_cast<unsigned>(order.tiles * f.heads), C::kThreads, C::kShared, stream_of(exec)>>>(
      maps, f, order, reinterpret_cast<uint8_t*>(exec.scratch.data()));
  note_launch();
  return true;
}

}  // namespace

bool attend_tiles(const Exec& exec, const FastAttention& f) {
  Maps maps{.box_rows = kKeyBlock};
  if (f.table != nullptr) {
    while (f.page % maps.box_rows != 0) maps.box_rows /= 2;
    if (maps.box_rows < 8) return false;
  }
  if (!make_map(maps.q, f.q, f.width, f.heads, f.rows, f.q_head, f.q_row, 64) ||
      !make_map(maps.k, f.k, f.width, f.kv_heads, f.key_rows, f.k_head, f.k_row, maps.box_rows) ||
      !make_map(maps.v, f.v, f.value_width, f.kv_heads, f.key_rows, f.v_head, f.v_row, maps.box_rows)) {
    return false;
  }
  if (std::max(f.width, f.value_width) > 64) {
    if (f.options) return run<Config<128, 2, 1, true, true, false>>(exec, f, maps);
    if (f.stats) return run<Config<128, 2, 1, true, false, false>>(exec, f, maps);
    return run<Config<128, 2, 1, false, false, true>>(exec, f, maps);
  }
  if (f.options) return run<Config<64, 2, 2, true, true, false>>(exec, f, maps);
  if (f.stats) return run<Config<64, 2, 2, true, false, false>>(exec, f, maps);
  return run<Config<64, 2, 2, false, false, false>>(exec, f, maps);
}

}  // namespace qkv::kernels::cuda

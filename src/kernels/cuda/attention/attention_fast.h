// Attention of bf16 on the tensor core: what its two forms share. attention_wgmma.cu takes tiles of query rows,
// attention_decode.cu one row with the query heads of a key head. Both have the same order, and so the same bits:
//
//   keys in blocks of 64, blocks in spans of 256, both counted from key 0 of the segment;
//   a score is one chain of k16 steps, a column of z one chain of k16 steps over the keys of a span;
//   inside a span online softmax, block by block. A sum over keys (total, entropy, distance) is eight chains, one for
//   each remainder of key / 8: the eight keys of a block ascending, then the blocks; then a tree over the remainders;
//   the spans are merged in order. A sink joins last;
//   with dropout, sums have all probabilities, and z those that are kept: its columns are multiplied by keep / total.
#pragma once

#include "kernels/cuda/attention/attention_drop.h"
#include "kernels/cuda/attention/attention_tiles.h"
#include "kernels/cuda/formulas.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {

inline constexpr int kKeyBlock = 64, kSpanBlocks = 4, kKeySpan = kKeyBlock * kSpanBlocks;
inline constexpr int kMostClasses = 8, kClassBytes = 2 * kMostClasses;  // counted inside the kernel
inline constexpr float kHidden = -1e30F;                                // the score of a key that a row does not see
inline constexpr float kLn2 = 0.6931471805599453F;

// AttentionArgs as the fast forms take them. Strides in elements.
struct FastAttention {
  const __nv_bfloat16 *q, *k, *v;
  __nv_bfloat16* z;
  float* lse;
  int64_t q_row, q_head, k_row, k_head, v_row, v_head, z_row, z_head;
  const int32_t *segments, *table, *kv_map;
  int rows, heads, kv_heads, key_rows, width, value_width, segment_count;
  int table_width, page;
  bool causal;
  int window, chunk;
  // Scores are kept as the product left them and `unit` turns them into logits; with options they are logits already.
  float scale, unit, unit2;  // unit2 = unit log2 e
  bool options;
  float softcap;
  const float *sinks, *slopes, *bias;
  const int32_t* buckets;
  int bias_row, reach;
  float *entropy, *distance, *first, *highest, *at_offset, *in_class;
  int32_t* argmax;
  const int32_t *offsets, *key_classes;
  int offset_count, class_count;
  bool stats;
  int few;  // segments of fewer rows are left to the form of one row
  DropMask drop;
};

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

struct FastSegment {
  int first_row, rows, first_key, keys, position;
};
__device__ inline FastSegment fast_segment(const FastAttention& f, int n) {
  const int32_t* s = f.segments + 6 * static_cast<int64_t>(n);
  return {s[1], s[2], s[3], s[4], s[5]};
}

// The segment of a row; -1 if none. A whole warp looks, its lanes at different segments.
__device__ inline int find_segment(const FastAttention& f, int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int from = row < f.segment_count ? -32 : 0; from < f.segment_count; from += 32) {
    const int n = from < 0 ? row : from + lane;  // decoding: segment r has row r
    bool here = false;
    if (n < f.segment_count) {
      const FastSegment s = fast_segment(f, n);
      here = row >= s.first_row && row < s.first_row + s.rows;
    }
    const uint32_t where = __ballot_sync(~0U, here);
    if (where != 0) return __shfl_sync(~0U, n, __ffs(static_cast<int>(where)) - 1);
  }
  return -1;
}

// The keys [begin, end) that a position sees. Neither bound falls as the position rises.
struct SeenKeys {
  int begin, end;
};
__device__ inline SeenKeys seen_keys(const FastAttention& f, int keys, int position) {
  SeenKeys s{0, keys};
  if (f.causal) s.end = min(s.end, position + 1);
  if (f.window > 0) {
    s.begin = max(0, position - f.window + 1);
    if (!f.causal) s.end = min(s.end, position + f.window);
  }
  if (f.chunk > 0) {
    const int first = position / f.chunk * f.chunk;
    s.begin = max(s.begin, first);
    s.end = min(s.end, first + f.chunk);
  }
  s.end = max(s.end, 0);
  s.begin = min(s.begin, s.end);
  return s;
}

// Row of k and v that holds key j of segment n; none may be there for keys that no row sees.
__device__ inline int key_row(const FastAttention& f, const FastSegment& s, int n, int j) {
  if (f.table == nullptr) return s.first_key + j;
  return f.table[static_cast<int64_t>(n) * f.table_width + j / f.page] * f.page + j % f.page;
}

// --- scores ----------------------------------------------------------------------------------------------------------

// Softcap, slopes and bias of one head.
struct HeadOptions {
  float slope = 0;
  const float* bias = nullptr;
  __device__ HeadOptions(const FastAttention& f, int head) {
    if (f.slopes != nullptr) slope = f.slopes[head];
    if (f.bias != nullptr) bias = f.bias + head * f.bias_row;
  }
  // Of a product s with the key `by` positions after the row.
  __device__ float logit(const FastAttention& f, float s, int by) const {
    s *= f.scale;
    if (f.softcap > 0) {  // cap tanh(s / cap)
      const float e = fast_exp2(fminf(s * (2 * kLog2E / f.softcap), 120.0F));
      s = f.softcap * (1.0F - __fdividef(2.0F, e + 1.0F));
    }
    if (f.slopes != nullptr) s = fmaf(slope, static_cast<float>(by), s);
    if (bias != nullptr) s += bias[f.buckets[max(-f.reach, min(f.reach, by)) + f.reach]];
    return s;
  }
};

// --- sums ------------------------------------------------------------------------------------------------------------

// The sums of a row over some of its keys, in units of 2^((s - highest) unit2).
struct RowSums {
  float highest = kHidden, total = 0;
  float log_mass = 0, distance = 0;  // sum p log2 p, sum p (position - key)
  int argmax = -1;
};

// What the eight keys of a chain add in one block. p comes in as scores and goes out as probabilities; `now` is the
// highest score up to this block, lag the position of the row minus that of the chain's first key.
template <bool kStats>
struct ChainBlock {
  float total = 0, log_mass = 0, distance = 0;
  __device__ __forceinline__ ChainBlock(float (&p)[8], float unit2, float now, float lag) {
    const float offset = now == kHidden ? 0.0F : now * unit2;
    float far = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float x = fmaf(p[j], unit2, -offset);
      p[j] = fast_exp2(x);
      total += p[j];
      if (kStats) {
        log_mass = fmaf(p[j], x, log_mass);
        far = fmaf(p[j], 8.0F * j, far);
      }
    }
    if (kStats) distance = fmaf(total, lag, -far);
  }
  ChainBlock() = default;
};

// A chain over the blocks of a span.
template <bool kStats>
struct Chain {
  float total = 0, log_mass = 0, distance = 0;
  // `down`: log2 of `rescale`, from the highest score before the block to the one now.
  __device__ __forceinline__ void add(const ChainBlock<kStats>& block, float down, float rescale) {
    if (kStats) {
      log_mass = fmaf(rescale, fmaf(down, total, log_mass), block.log_mass);
      distance = fmaf(distance, rescale, block.distance);
    }
    total = fmaf(total, rescale, block.total);
  }
};

struct MergeBy {
  float total, span;
};
// Puts the sums of the next span to those before; its columns are then fmaf(span, by.span, total * by.total). Where one
// of the two has seen no key, the other is kept as it is: -0 makes the product of an empty sum a -0, which adds nothing.
template <bool kStats>
__device__ __forceinline__ MergeBy merge(RowSums& total, const RowSums& span, float unit2) {
  if (span.total == 0) return {1.0F, -0.0F};
  if (total.total == 0) {
    total = span;
    return {-0.0F, 1.0F};
  }
  const float now = fmaxf(total.highest, span.highest);
  const float down_total = (total.highest - now) * unit2, down_span = (span.highest - now) * unit2;
  const MergeBy by{fast_exp2(down_total), fast_exp2(down_span)};
  if (kStats) {
    total.log_mass =
        by.total * fmaf(down_total, total.total, total.log_mass) + by.span * fmaf(down_span, span.total, span.log_mass);
    total.distance = fmaf(span.distance, by.span, total.distance * by.total);
    if (span.highest > total.highest) total.argmax = span.argmax;
  }
  total.total = fmaf(span.total, by.span, total.total * by.total);
  total.highest = now;
  return by;
}

// Writes LSE and statistics of a row and head; returns what its columns are multiplied by. `writes`: this lane does.
template <bool kStats = true>
__device__ __forceinline__ float finish_row(const FastAttention& f, const RowSums& sums, int row, int head,
                                            bool writes) {
  const float logit = sums.highest * f.unit;
  float top = logit, keep = 1, total = sums.total;
  if (f.sinks != nullptr) {
    const float s = f.sinks[head];
    top = sums.total == 0 ? s : fmaxf(logit, s);
    keep = fast_exp2((logit - top) * kLog2E);
    total = fmaf(sums.total, keep, fast_exp2((s - top) * kLog2E));
  }
  const bool empty = total == 0;
  const float log_total = logf(total), by = empty ? 0.0F : keep / total;
  if (!writes) return by;
  const int64_t at = static_cast<int64_t>(row) * f.heads + head;
  f.lse[at] = empty ? -INFINITY : top + log_total;
  if (!kStats || !f.stats) return by;
  const bool none = sums.total == 0;
  if (f.entropy != nullptr) {
    f.entropy[at] = none ? 0.0F : sums.total * by * (top - logit + log_total) - kLn2 * (sums.log_mass * by);
  }
  if (f.distance != nullptr) f.distance[at] = none ? 0.0F : sums.distance * by;
  if (f.highest != nullptr) f.highest[at] = none ? 0.0F : by;
  if (f.argmax != nullptr) f.argmax[at] = sums.argmax;
  return by;
}

// What a row of no segment has, for the lanes of a warp.
__device__ inline void blank_row(const FastAttention& f, int row, int head, int lane) {
  const int64_t at = static_cast<int64_t>(row) * f.heads + head;
  for (int c = lane; c < f.value_width; c += 32) f.z[row * f.z_row + head * f.z_head + c] = __float2bfloat16_rn(0.0F);
  for (int o = lane; o < f.offset_count; o += 32) f.at_offset[at * f.offset_count + o] = 0;
  for (int c = lane; c < f.class_count; c += 32) f.in_class[at * f.class_count + c] = 0;
  if (lane != 0) return;
  f.lse[at] = -INFINITY;
  if (f.entropy != nullptr) f.entropy[at] = 0;
  if (f.distance != nullptr) f.distance[at] = 0;
  if (f.first != nullptr) f.first[at] = 0;
  if (f.highest != nullptr) f.highest[at] = 0;
  if (f.argmax != nullptr) f.argmax[at] = -1;
}

// --- the forms -------------------------------------------------------------------------------------------------------

// The whole call in the fast forms; false where it is left to the plain one. What decides is the same for any number of
// rows, cached or not.
bool attend_fast(const Exec& exec, const AttentionArgs& a);

// Tiles of 64 rows a warpgroup; false where the copy engine cannot take these tensors. Marks go to scratch, a byte per
// head and 16 rows: 1 where some column is no number, which may be the fault of a hidden value (0 times NaN).
bool attend_tiles(const Exec& exec, const FastAttention& f);

// The same where all_short(), without statistics, options, pages and dropout; marks lie segment after segment, kShortMarks for
// each head. False where heads are too wide.
inline constexpr int kShortMarks = kShort / 16;
bool attend_short(const Exec& exec, const FastAttention& f);

// One row and key head at a time: of all rows; of segments with fewer than f.few rows; of rows that attend_tiles marked, or
// attend_short.
enum class RowsOf { all, short_segments, marked, marked_short };
void attend_rows(const Exec& exec, const FastAttention& f, RowsOf which);
bool rows_fit(bool wide);  // into shared memory; heads wider than 64, and all with dropout, are wide

// After those, where they are asked for: f.first and f.at_offset of rows in segments.
void attend_single_keys(const Exec& exec, const FastAttention& f);

}  // namespace qkv::kernels::cuda

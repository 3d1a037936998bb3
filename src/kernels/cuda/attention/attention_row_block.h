// A row over its spans of keys. Each of the four warps has the scores of one block of 64 keys, then each some columns
// of z over the four blocks.
#pragma once

#include "kernels/cuda/attention/attention_row.h"

namespace qkv::kernels::cuda {

// kPlain: without statistics, caps, slopes and bias. A pass of few rows runs once through this code, and reads it from memory as
// it goes: what is not there takes no time.
template <int kWidth, bool kDrop, bool kPlain>
class RowBlock {
 public:
  static constexpr bool kStats = !kPlain;
  using State = RowState<kWidth, kStats>;
  static constexpr int kChunks = kWidth / 8;    // of 16 bytes, a key
  static constexpr int kPartial = kWidth + 16;  // floats of one span and head: columns, sums, class masses

  __device__ RowBlock(const FastAttention& f, const RowPlan& plan, Shared<kWidth>& shared)
      : f_(f), plan_(plan), s_(shared), keys_(shared_address(shared.keys)), values_(shared_address(shared.values)) {}

  // All heads of the tile, key head by key head.
  __device__ void attend(int n, const FastSegment& segment, int row, int tile, int split, int splits, int task) {
    RowTask t{.segment = segment, .segment_index = n, .row = row};
    t.position = segment.position + row - segment.first_row;
    t.first_head = tile * plan_.tile;
    t.seen = seen_keys(f_, segment.keys, t.position);
    const int head = t.first_head + static_cast<int>(lane_);
    const int mine = lane_ < plan_.tile && head < f_.heads ? f_.kv_map[head] : -1;
    uint32_t left = __ballot_sync(~0U, mine >= 0);
    const int first = __shfl_sync(~0U, mine, 0);
    const bool one = __all_sync(~0U, mine < 0 || mine == first);
    if (!one && split > 0) return;
    while (left != 0) {
      t.kv_head = __shfl_sync(~0U, mine, __ffs(static_cast<int>(left)) - 1);
      t.members = __ballot_sync(~0U, mine == t.kv_head);
      left &= ~t.members;
      walk(t, one ? split : 0, one ? splits : 1, task);
    }
  }

 private:
  __device__ void walk(const RowTask& t, int split, int splits, int task) {
    const int first = t.seen.begin / kKeySpan, end = (t.seen.end + kKeySpan - 1) / kKeySpan;
    const int workers = max(min(splits, end - first), 1);
    if (split >= workers) return;
    load_first(t, first + split);
    load_queries(t);
    State state;
#pragma unroll 1
    for (int s = first + split; s < end; s += workers) {
      State span;
      attend_span(t, s, s + workers, end, span);
      if (workers == 1) {
        state.append(span, f_.unit2);
      } else {
        put_partial(span, partial_at(task, s));
      }
    }
    wait_for_chunks<0>();
    if (workers > 1) {
      if (!last_to_arrive(task, workers)) return;
#pragma unroll 2
      for (int s = first; s < end; ++s) state.append(get_partial(partial_at(task, s)), f_.unit2);
    }
    finish(t, state);
    __syncthreads();
  }

  __device__ void load_queries(const RowTask& t) {
    const int head = lane_ / 4;
    const __nv_bfloat16* from = f_.q + t.row * f_.q_row + (t.first_head + head) * f_.q_head + 2 * (lane_ % 4);
    const bool member = t.members >> head & 1;
#pragma unroll
    for (int k = 0; k < kWidth / 8; ++k) {
      q_[k] = member && 8 * k < f_.width ? *reinterpret_cast<const uint32_t*>(from + 8 * k) : 0U;
    }
  }

  __device__ bool sees_block(const RowTask& t, int span, int block) const {
    const int from = span * kKeySpan + block * kKeyBlock;
    return from < t.seen.end && from + kKeyBlock > t.seen.begin;
  }

  // Calls for the keys or values of this warp's block, those before `until`; what is not seen becomes zeros.
  __device__ void load(const RowTask& t, int span, bool of_keys, int until = INT32_MAX) {
    if (span * kKeySpan >= t.seen.end || !sees_block(t, span, warp_)) return;
    const int from = span * kKeySpan + warp_ * kKeyBlock;
    int rows[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int key = from + 32 * h + lane_;
      rows[h] =
          key >= t.seen.begin && key < t.seen.end && key < until ? key_row(f_, t.segment, t.segment_index, key) : -1;
    }
    const __nv_bfloat16* data = of_keys ? f_.k + t.kv_head * f_.k_head : f_.v + t.kv_head * f_.v_head;
    const int64_t stride = of_keys ? f_.k_row : f_.v_row;
    const int width = of_keys ? f_.width : f_.value_width;
    const uint32_t to = of_keys ? keys_ : values_;
    constexpr int kAtOnce = 32 / kChunks;
    const int chunk = lane_ % kChunks;
#pragma unroll 4
    for (int r = lane_ / kChunks; r < kKeyBlock; r += kAtOnce) {
      const int row = __shfl_sync(~0U, r < 32 ? rows[0] : rows[1], r % 32);
      const bool there = row >= 0 && 8 * chunk < width;
      fetch_chunk_past_cache(piece<kWidth>(to, warp_ * kKeyBlock + r, chunk),
                             there ? data + row * stride + 8 * chunk : data, there);
    }
  }

  // The first span. Keys of earlier passes are called for before the kernels ahead have ended, the few of this pass after.
  __device__ void load_first(const RowTask& t, int span) {
    constexpr int kFewFresh = 4;
    const bool early = plan_.which == RowsOf::all && f_.table != nullptr && t.segment.rows <= kFewFresh;
    if (!early) wait_for_last();
    const int fresh = early ? t.segment.position : INT32_MAX, block = span * kKeySpan + warp_ * kKeyBlock;
    load(t, span, true, fresh);
    load(t, span, false, fresh);
    wait_for_last();
    let_next_start();  // not before: weights that the next one calls for would delay keys and values
    if (fresh < block + kKeyBlock) wait_for_all_chunks();  // zeros lie where those go
    __syncwarp();
    const bool of_keys = lane_ < kChunks;
    const int chunk = lane_ % kChunks, width = of_keys ? f_.width : f_.value_width;
#pragma unroll 1
    for (int key = max(max(block, fresh), t.seen.begin); key < min(block + kKeyBlock, t.seen.end); ++key) {
      const int64_t row = key_row(f_, t.segment, t.segment_index, key);
      const __nv_bfloat16* from =
          of_keys ? f_.k + t.kv_head * f_.k_head + row * f_.k_row : f_.v + t.kv_head * f_.v_head + row * f_.v_row;
      if (lane_ >= 2 * kChunks) continue;
      const bool there = 8 * chunk < width;
      fetch_chunk_past_cache(piece<kWidth>(of_keys ? keys_ : values_, key - span * kKeySpan, chunk),
                             there ? from + 8 * chunk : from, there);
    }
    end_of_chunks();
    end_of_chunks();
  }

  __device__ void find_scores(float (&s)[4][4]) {
#pragma unroll
    for (int m = 0; m < 4; ++m) {
#pragma unroll
      for (int k = 0; k < 4; ++k) s[m][k] = 0;
#pragma unroll
      for (int k = 0; k < kWidth / 16; ++k) {
        uint32_t a[4];
        read_fragments(a, piece<kWidth>(keys_, warp_ * kKeyBlock + 16 * m + lane_ % 16, 2 * k + lane_ / 16));
        mma(s[m], a, q_[2 * k], q_[2 * k + 1]);
      }
    }
  }

  // One span; the next one is called for on the way.
  __device__ void attend_span(const RowTask& t, int span, int next, int end, State& out) {
    const int first_key = span * kKeySpan + warp_ * kKeyBlock, heads = 2 * (lane_ % 4), remainder = lane_ / 4;
    const bool sees = sees_block(t, span, warp_);
    float p[2][8];
    wait_for_chunks<1>();
    __syncwarp();
    if (sees) {
      float s[4][4];
      find_scores(s);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) p[i][j] = s[j / 2][2 * (j % 2) + i];
      }
    }
    __syncwarp();
    load(t, next, true);
    end_of_chunks();
    if (sees)
      score(t, p, first_key);
    else if (lane_ < kTileHeads)
      s_.highest[warp_][lane_] = kHidden;
    __syncthreads();

    if (sees) {
      float before[2], now[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        before[i] = highest_before(warp_, heads + i);
        now[i] = fmaxf(before[i], s_.highest[warp_][heads + i]);
        const auto lag = static_cast<float>(t.position - first_key - remainder);
        const ChainBlock<kStats> block(p[i], f_.unit2, now[i], lag);
        s_.sums[0][warp_][heads + i][remainder] = block.total;
        if constexpr (kStats) {
          s_.sums[1][warp_][heads + i][remainder] = block.log_mass;
          s_.sums[2][warp_][heads + i][remainder] = block.distance;
        }
      }
      if constexpr (kDrop) drop(t, p, first_key / kKeyBlock);
#pragma unroll
      for (int j = 0; j < 8; ++j) s_.probabilities[warp_][j / 2][j % 2][lane_] = transpose(pack(p[0][j], p[1][j]));
    }
    wait_for_chunks<1>();
    __syncthreads();

    Chain<kStats> chain[2];
    float mass[4] = {};
#pragma unroll 1
    for (int b = 0; b < kSpanBlocks; ++b) {
      if (!sees_block(t, span, b)) continue;
      float rescale[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float before = highest_before(b, heads + i), now = fmaxf(before, s_.highest[b][heads + i]);
        const float down = (before - now) * f_.unit2;
        rescale[i] = fast_exp2(down);
        ChainBlock<kStats> block;
        block.total = s_.sums[0][b][heads + i][remainder];
        if constexpr (kStats) {
          block.log_mass = s_.sums[1][b][heads + i][remainder];
          block.distance = s_.sums[2][b][heads + i][remainder];
          if (now > before) out.sums[i].argmax = s_.argmax[b][heads + i];
        }
        chain[i].add(block, down, rescale[i]);
        out.sums[i].highest = now;
      }
      add_values(t, b, rescale, out);
      if constexpr (kStats) {
        if (f_.class_count > 0) count_classes(t, span, b, rescale, mass);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      out.sums[i].total = remainder_sum(chain[i].total);
      if constexpr (kStats) {
        out.sums[i].log_mass = remainder_sum(chain[i].log_mass);
        out.sums[i].distance = remainder_sum(chain[i].distance);
        out.mass[i] = mass[i];
      }
    }
    __syncthreads();
    load(t, next, false);
    end_of_chunks();
  }

  // Options, hidden keys, the highest score of the block and its key.
  __device__ void score(const RowTask& t, float (&p)[2][8], int first_key) {
    const int heads = 2 * (lane_ % 4), remainder = lane_ / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int head = t.first_head + heads + i;
      const bool member = t.members >> (heads + i) & 1;
      if (!kPlain && f_.options && member) {
        const HeadOptions options(f_, head);
#pragma unroll
        for (int j = 0; j < 8; ++j) p[i][j] = options.logit(f_, p[i][j], first_key + 8 * j + remainder - t.position);
      }
      float top = kHidden;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int key = first_key + 8 * j + remainder;
        if (key < t.seen.begin || key >= t.seen.end) p[i][j] = kHidden;
        top = fmaxf(top, p[i][j]);
      }
      top = remainder_max(top);
      if (kStats && f_.stats) {
        int best = INT32_MAX;
#pragma unroll
        for (int j = 7; j >= 0; --j) {
          if (p[i][j] == top) best = first_key + 8 * j + remainder;
        }
        for (int lanes = 4; lanes < 32; lanes *= 2) best = min(best, __shfl_xor_sync(~0U, best, lanes));
        if (remainder == 0) s_.argmax[warp_][heads + i] = best;
      }
      if (remainder == 0) s_.highest[warp_][heads + i] = top;
    }
  }

  // Zeros for what is dropped.
  __device__ void drop(const RowTask& t, float (&p)[2][8], int block) const {
    const int remainder = lane_ / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int head = min(t.first_head + 2 * (lane_ % 4) + i, f_.heads - 1);  // the tile may have fewer
      const uint32_t kept = f_.drop.part(f_.drop.at(head, block, t.row), remainder / 2) >> remainder % 2 * 8;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if ((kept >> j & 1) == 0) p[i][j] = 0;
      }
    }
  }

  __device__ float highest_before(int block, int head) const {
    float x = kHidden;
    for (int b = 0; b < block; ++b) x = fmaxf(x, s_.highest[b][head]);
    return x;
  }

  __device__ void add_values(const RowTask& t, int b, const float (&rescale)[2], State& out) {
#pragma unroll
    for (int m = 0; m < State::kTiles; ++m) {
#pragma unroll
      for (int k = 0; k < 4; ++k) out.z[m][k] *= rescale[k % 2];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const uint32_t low = s_.probabilities[b][k][0][lane_], high = s_.probabilities[b][k][1][lane_];
#pragma unroll
      for (int m = 0; m < State::kTiles; ++m) {
        uint32_t a[4];
        read_fragments_transposed(a, piece<kWidth>(values_, b * kKeyBlock + 16 * k + lane_ % 8 + lane_ / 16 * 8,
                                                   2 * (warp_ * State::kTiles + m) + lane_ / 8 % 2));
        mma(out.z[m], a, low, high);
      }
    }
  }

  __device__ void count_classes(const RowTask& t, int span, int b, const float (&rescale)[2], float (&mass)[4]) {
    constexpr uint32_t kOne = 0x3F80;
    const auto is = [&](int key) {
      const bool there = key >= t.seen.begin && key < t.seen.end;
      return there && f_.key_classes[key_row(f_, t.segment, t.segment_index, key)] == lane_ / 4 ? kOne : 0U;
    };
#pragma unroll
    for (int k = 0; k < 4; ++k) mass[k] *= rescale[k % 2];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int key = span * kKeySpan + b * kKeyBlock + 16 * k + 2 * (lane_ % 4);
      const uint32_t a[4] = {is(key) | is(key + 1) << 16, 0, is(key + 8) | is(key + 9) << 16, 0};
      mma(mass, a, s_.probabilities[b][k][0][lane_], s_.probabilities[b][k][1][lane_]);
    }
  }

  __device__ float* partial_at(int task, int span) const {
    return plan_.partial + (static_cast<int64_t>(task) * plan_.spans + span) * kTileHeads * kPartial;
  }
  // Calls f(where, which number of the state) for all of this lane's.
  template <class F>
  __device__ void each_number(float* at, State& state, F&& move) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int head = 2 * (lane_ % 4) + i;
      if (head >= plan_.tile) continue;
      float* row = at + head * kPartial;
#pragma unroll
      for (int m = 0; m < State::kTiles; ++m) {
        move(row + 16 * (warp_ * State::kTiles + m) + lane_ / 4, state.z[m][i]);
        move(row + 16 * (warp_ * State::kTiles + m) + lane_ / 4 + 8, state.z[m][2 + i]);
      }
      move(row + kWidth, state.sums[i].highest);
      move(row + kWidth + 1, state.sums[i].total);
      if (kPlain) continue;
      move(row + kWidth + 2, state.sums[i].log_mass);
      move(row + kWidth + 3, state.sums[i].distance);
      move(row + kWidth + 4, *reinterpret_cast<float*>(&state.sums[i].argmax));
      if (f_.class_count > 0) move(row + kWidth + 8 + lane_ / 4, state.mass[i]);
    }
  }
  __device__ void put_partial(State& state, float* at) const {
    each_number(at, state, [](float* to, float& x) { *to = x; });
  }
  __device__ State get_partial(float* at) const {
    State state;
    each_number(at, state, [](float* from, float& x) { x = __ldcg(from); });
    return state;
  }
  __device__ bool last_to_arrive(int task, int workers) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      s_.last = atomicAdd(&arrivals[task], 1U) == static_cast<unsigned>(workers) - 1;
      if (s_.last) arrivals[task] = 0;
    }
    __syncthreads();
    __threadfence();
    return s_.last;
  }

  __device__ void finish(const RowTask& t, const State& state) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int slot = 2 * (lane_ % 4) + i, head = t.first_head + slot, remainder = lane_ / 4;
      if ((t.members >> slot & 1) == 0) continue;
      const RowSums& sums = state.sums[i];
      float by = finish_row<kStats>(f_, sums, t.row, head, warp_ == 0 && remainder == 0);
      if constexpr (kDrop) by *= f_.drop.scale;
      __nv_bfloat16* out = f_.z + t.row * f_.z_row + head * f_.z_head;
#pragma unroll
      for (int m = 0; m < State::kTiles; ++m) {
        const int column = 16 * (warp_ * State::kTiles + m) + remainder;
        if (column < f_.value_width) out[column] = __float2bfloat16_rn(state.z[m][i] * by);
        if (column + 8 < f_.value_width) out[column + 8] = __float2bfloat16_rn(state.z[m][2 + i] * by);
      }
      if (kPlain || !f_.stats || warp_ != 0) continue;
      if (remainder < f_.class_count) {
        f_.in_class[(static_cast<int64_t>(t.row) * f_.heads + head) * f_.class_count + remainder] = state.mass[i] * by;
      }
    }
  }

  const FastAttention& f_;
  const RowPlan& plan_;
  Shared<kWidth>& s_;
  const uint32_t keys_, values_;
  const int lane_ = static_cast<int>(threadIdx.x) % 32, warp_ = static_cast<int>(threadIdx.x) / 32;
  uint32_t q_[kWidth / 8];
};

}  // namespace qkv::kernels::cuda

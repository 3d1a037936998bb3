// Attention of bf16 in tiles: a warpgroup takes 64 rows of q and one head, wgmma multiplies, the copy engine brings
// blocks of keys and values, asked for by whichever warpgroup is the last to be done with the block before. Order of
// sums: attention_fast.h.
//
// Tiles lie at fixed rows of q, whatever the segments: a tile finds the segments it touches and goes through the keys
// of each. So the grid follows from shapes alone, and rows of no segment are blanked on the way.
#include "kernels/cuda/attention/attention_feed.h"
#include "kernels/cuda/tensor_map.h"

namespace qkv::kernels::cuda {
namespace {

// One block of threads: a tile of rows and one head, over all segments it touches.
template <class C>
class Tile {
 public:
  __device__ Tile(const FastAttention& f, const Maps& maps, const TileAt& at, uint8_t* raw, TileSegments& found)
      : f_(f),
        found_(found),
        feed_(f, maps, at, raw, found),
        thread_(static_cast<int>(threadIdx.x)),
        group_(__shfl_sync(~0U, thread_ / 128, 0)),
        lane_(thread_ % 32),
        warp_(thread_ % 128 / 32),
        quad_(lane_ % 4),
        first_row_(at.tile * C::kRows),
        head_(at.head),
        kept_(reinterpret_cast<float*>(raw + (feed_.keys(kStages) - shared_address(raw))) +
              group_ * 128 * C::kKeptEach + thread_ % 128),
        options_(f, at.head) {
    feed_.begin(at.head);
  }

  // Segment `pass` of those found.
  __device__ __forceinline__ void attend(int pass) {
    const Visit at = feed_.visit(pass);
    const FastSegment& seg = at.segment;
    const SeenKeys blocks = at.blocks;
    const int group_row = first_row_ + 64 * group_, first = max(group_row, seg.first_row),
              last = min(group_row + 64, seg.first_row + seg.rows) - 1;
    SeenKeys mine{blocks.begin, blocks.begin};  // my blocks
    whole_ = {0, 0};
    if (first <= last) {
      mine = blocks_of(f_, seg, first, last);
      whole_ = {seen_keys(f_, seg.keys, seg.position + last - seg.first_row).begin,
                seen_keys(f_, seg.keys, seg.position + first - seg.first_row).end};
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows_.row[i] = group_row + 16 * warp_ + lane_ / 4 + 8 * i;
      rows_.valid[i] = rows_.row[i] >= first && rows_.row[i] <= last;
      rows_.position[i] = seg.position + rows_.row[i] - seg.first_row;
      rows_.seen[i] = rows_.valid[i] ? seen_keys(f_, seg.keys, rows_.position[i]) : SeenKeys{0, 0};
    }
    float z[C::kWidth / 2], mass[4] = {};
    Span<C> span;
    Before<C> before{.kept = kept_};
    RowSums sums[2];
    Best best;
    bool fresh = true;
    const auto soften = [&](float(&s)[32], uint32_t(&p)[4][4], int b) {
      uint32_t kept = 0;  // called for before the softmax
      if constexpr (C::kDrop) kept = f_.drop.parts(f_.drop.at(head_, b, rows_.row[0]), quad_);
      find_probabilities(s, b * kKeyBlock, span, z, mass, best, fresh);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) p[k][i] = pack(s[8 * k + 2 * i], s[8 * k + 2 * i + 1]);
      }
      if constexpr (C::kDrop) drop(p, kept);
    };
    const auto add_block = [&](const uint32_t(&p)[4][4], int b) {
      add_block_of_values(p, z, mass, seg.keys - b * kKeyBlock, fresh);
      feed_.release(at, b);
      fresh = (b + 1) % kSpanBlocks == 0;
      if (fresh && b + 1 < mine.end) {
        before.merge_span(span, sums, z, mass, f_.unit2, false);
        span = Span<C>();
        for (float& m : mass) m = 0;
      }
    };

    feed_.skip(at, blocks.begin, mine.begin);
    if (mine.begin == mine.end) {
#pragma unroll
      for (float& c : z) c = 0;
    } else if constexpr (C::kEarly) {
      float s[32];
      uint32_t p[4][4];
      feed_.wait_for_keys();
      scores(s, feed_.stage());
      wgmma_wait<0>();
#pragma unroll 1
      for (int b = mine.begin; b < mine.end - 1; ++b) {
        float s_next[32];
        feed_.wait_for_next_keys();
        scores(s_next, feed_.next_stage());
        soften(s, p, b);
        add_block(p, b);
#pragma unroll
        for (int k = 0; k < 32; ++k) s[k] = s_next[k];
      }
      soften(s, p, mine.end - 1);
      add_block(p, mine.end - 1);
    } else {
#pragma unroll 1
      for (int b = mine.begin; b < mine.end; ++b) {
        float s[32];
        uint32_t p[4][4];
        feed_.wait_for_keys();
        scores(s, feed_.stage());
        wgmma_wait<0>();
        soften(s, p, b);
        add_block(p, b);
      }
    }
    feed_.skip(at, mine.end, blocks.end);
    before.merge_span(span, sums, z, mass, f_.unit2, true);
#pragma unroll
    for (int i = 0; i < 2; ++i) sums[i].argmax = best.key[i];
    write(sums, z, mass);
  }

  // Rows of no segment; and a mark where some column is no number.
  __device__ void end(uint8_t* marks) {
    const bool bad = __any_sync(~0U, bad_);
    const int64_t sixteen = first_row_ / 16 + 4 * group_ + warp_;
    if (lane_ == 0) marks[sixteen * f_.heads + head_] = bad;
    const int first = 64 * group_ + 16 * warp_;
    for (uint32_t blank = ~found_.covered[first / 32] >> first % 32 & 0xffffU; blank != 0; blank &= blank - 1) {
      const int row = first_row_ + first + __ffs(static_cast<int>(blank)) - 1;
      if (row < f_.rows) blank_row(f_, row, head_, lane_);
    }
  }

 private:
  __device__ __forceinline__ void scores(float (&s)[32], int stage) {
    find_scores<C::kWidth>(s, feed_.queries() + group_ * C::kTile, feed_.keys(stage));
  }

  __device__ __forceinline__ void find_probabilities(float (&s)[32], int first_key, Span<C>& span,
                                                     float (&z)[C::kWidth / 2], float (&mass)[4], Best& best,
                                                     bool fresh) {
    if (C::kOptions && f_.options) {
#pragma unroll
      for (int k = 0; k < 32; ++k) {
        s[k] = options_.logit(f_, s[k], first_key + 8 * (k / 4) + 2 * quad_ + k % 2 - rows_.position[k % 4 / 2]);
      }
    }
    if (first_key < whole_.begin || first_key + kKeyBlock > whole_.end) hide(s, rows_, first_key, quad_);
    span.soften(f_, s, z, mass, best, rows_, first_key, quad_, fresh);
  }

  // Only `there` values of the block are the segment's.
  __device__ __forceinline__ void add_block_of_values(const uint32_t (&p)[4][4], float (&z)[C::kWidth / 2],
                                                      float (&mass)[4], int there, bool fresh) {
    const uint32_t values = feed_.values(feed_.stage());
    feed_.wait_for_values();
    clear_values<C::kPanels>(values, there, group_);
    add_values<C::kWidth>(z, p, values, fresh);
    if (C::kStats && f_.class_count > 0) count_classes(mass, p, feed_.classes(feed_.stage()), lane_);
    wgmma_wait<0>();
  }

  __device__ __forceinline__ void write(const RowSums (&sums)[2], const float (&z)[C::kWidth / 2],
                                        const float (&mass)[4]) {
    float by[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = rows_.row[i];
      by[i] = finish_row(f_, sums[i], row, head_, quad_ == 0 && rows_.valid[i]);
      if constexpr (C::kDrop) by[i] *= f_.drop.scale;
      if (C::kStats && rows_.valid[i]) {
        float* classes = f_.in_class + (static_cast<int64_t>(row) * f_.heads + head_) * f_.class_count;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (2 * quad_ + e < f_.class_count) classes[2 * quad_ + e] = mass[2 * i + e] * by[i];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) bad_ = put_columns<C>(f_, rows_, i, head_, quad_, z, by[i]) || bad_;
  }

  const FastAttention& f_;
  const TileSegments& found_;
  Feed<C> feed_;
  const int thread_, group_, lane_, warp_, quad_, first_row_, head_;
  float* const kept_;
  const HeadOptions options_;
  RowPair rows_;
  SeenKeys whole_;  // keys that all rows of the warpgroup see
  bool bad_ = false;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kEach)
    attend_tile(const __grid_constant__ Maps maps, const __grid_constant__ FastAttention f, const Order order,
                uint8_t* marks) {
  __shared__ TileSegments found;
  wait_for_last();
  Tile<C> tile(f, maps, tile_at(order, f.heads, static_cast<int>(blockIdx.x)), dynamic_shared(), found);
#pragma unroll 1
  for (int pass = 0; pass < found.count; ++pass) tile.attend(pass);
  tile.end(marks);
}

template <class C>
bool run(const Exec& exec, const FastAttention& f, const Maps& maps) {
  static const bool prepared =
      cudaFuncSetAttribute(attend_tile<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kShared) == cudaSuccess &&
      cudaFuncSetAttribute(attend_tile<C>, cudaFuncAttributePreferredSharedMemoryCarveout, 100) == cudaSuccess;
  if (!prepared) return false;
  Order order{.tiles = (f.rows + C::kRows - 1) / C::kRows};
  const int length = f.rows / f.segment_count;
  if (f.causal && f.rows % f.segment_count == 0 && length % C::kRows == 0) {
    constexpr int64_t kCacheBytes = 32 << 20;
    order.per_sequence = length / C::kRows;
    order.pairs_at_once = static_cast<int>(std::max<int64_t>(kCacheBytes / (int64_t{4} * length * C::kWidth), 1));
  }
  launch(exec, attend_tile<C>, static_cast<unsigned>(order.tiles * f.heads), C::kThreads, C::kShared, maps, f, order,
         reinterpret_cast<uint8_t*>(exec.scratch.data()));
  return true;
}

// A row of kMostClasses numbers for each key, behind the marks in scratch. False where there is no room.
bool spread_classes(const Exec& exec, const FastAttention& f, Maps& maps) {
  const int64_t marks = (int64_t{(f.rows + kTileRows - 1) / kTileRows} * (kTileRows / 16) * f.heads + 127) / 128 * 128;
  const int64_t count = int64_t{f.key_rows} + kKeyBlock;
  if (marks + count * kClassBytes > exec.scratch.count()) return false;
  auto* to = reinterpret_cast<uint4*>(exec.scratch.data() + marks);
  const int32_t* of = f.key_classes;
  const int keys = f.key_rows;
  each_thread(exec, count, [=] __device__(int64_t i) {
    const int c = i < keys ? of[i] : kMostClasses;
    const auto pair = [c](int p) { return c / 2 == p ? 0x3F80U << 16 * (c % 2) : 0U; };
    to[i] = make_uint4(pair(0), pair(1), pair(2), pair(3));
  });
  maps.classes = to;
  return true;
}

}  // namespace

bool attend_tiles(const Exec& exec, const FastAttention& f) {
  if (!hopper()) return false;
  Maps maps{.box_rows = kKeyBlock};
  if (f.class_count > 0 && !spread_classes(exec, f, maps)) return false;
  if (f.table != nullptr) {
    while (f.page % maps.box_rows != 0) maps.box_rows /= 2;
    if (maps.box_rows < 8) return false;
  }
  if (!map_heads(maps.q, f.q, f.width, f.heads, f.rows, f.q_head, f.q_row, 64) ||
      !map_heads(maps.k, f.k, f.width, f.kv_heads, f.key_rows, f.k_head, f.k_row, maps.box_rows) ||
      !map_heads(maps.v, f.v, f.value_width, f.kv_heads, f.key_rows, f.v_head, f.v_row, maps.box_rows)) {
    return false;
  }
  if (std::max(f.width, f.value_width) > 64) {
    if (f.drop.words != nullptr) return run<Config<128, 2, 1, false, false, true, true>>(exec, f, maps);
    if (f.options) return run<Config<128, 2, 1, true, true, false>>(exec, f, maps);
    if (f.stats) return run<Config<128, 2, 1, true, false, false>>(exec, f, maps);
    return run<Config<128, 2, 1, false, false, true>>(exec, f, maps);
  }
  if (f.drop.words != nullptr) return run<Config<64, 2, 2, false, false, false, true>>(exec, f, maps);
  if (f.options) return run<Config<64, 2, 2, true, true, false>>(exec, f, maps);
  if (f.stats) return run<Config<64, 2, 2, true, false, false>>(exec, f, maps);
  return run<Config<64, 2, 2, false, false, false>>(exec, f, maps);
}

}  // namespace qkv::kernels::cuda

// Attention of bf16 for few rows: a block takes one row of q with up to eight heads that read one key head, and walks
// spans of 256 keys; where that fills the GPU too little, several blocks share the spans, and the last one to finish
// merges them in order. Order of sums: attention_fast.h.
#include "kernels/cuda/attention/attention_row_block.h"

namespace qkv::kernels::cuda {
namespace {

__device__ void blank_heads(const FastAttention& f, int row, int from, int to) {
  for (int h = from + static_cast<int>(threadIdx.x) / 32; h < to; h += kSpanBlocks) {
    blank_row(f, row, h, static_cast<int>(threadIdx.x) % 32);
  }
}

template <int kWidth, bool kDrop, bool kPlain>
__global__ void __launch_bounds__(kBlockThreads, kBlocksEach<kWidth>)
    attend_row(const __grid_constant__ FastAttention f, const __grid_constant__ RowPlan plan) {
  RowBlock<kWidth, kDrop, kPlain> block(f, plan, *reinterpret_cast<Shared<kWidth>*>(dynamic_shared<128>()));
  const bool all = plan.which == RowsOf::all, in_sequences = plan.which == RowsOf::marked_short,
             marked = plan.which == RowsOf::marked || in_sequences;
  if (!all) wait_for_last();
  if (marked) {  // mostly there is none: all threads look at once
    bool any = false;
    for (int64_t i = blockIdx.x + int64_t{gridDim.x} * threadIdx.x; i < plan.items;
         i += int64_t{gridDim.x} * kBlockThreads) {
      any = any || plan.marks[i] != 0;
    }
    if (__syncthreads_or(any ? 1 : 0) == 0) return;
  }
  for (int64_t i = blockIdx.x; i < plan.items; i += gridDim.x) {
    const int split = static_cast<int>(i % plan.splits), task = static_cast<int>(i / plan.splits);
    int tile = task % plan.tiles, first = task / plan.tiles, count = 1, n = -1;
    if (marked) {
      if (plan.marks[i] == 0) continue;
      tile = task % f.heads / plan.tile;
      first = task / f.heads * 16;
      count = min(16, f.rows - first);
      if (in_sequences) {
        const FastSegment s = fast_segment(f, first / kShort);
        count = min(16, s.rows - first % kShort);
        first = s.first_row + first % kShort;
      }
    } else if (!all) {
      n = first;
      const FastSegment s = fast_segment(f, n);
      first = s.first_row;
      count = s.rows < f.few ? s.rows : 0;
    }
#pragma unroll 1
    for (int r = 0; r < count; ++r) {
      const int row = first + r, in = n >= 0 ? n : find_segment(f, row);
      if (in < 0) {
        wait_for_last();
        if (all && split == 0) blank_heads(f, row, tile * plan.tile, min((tile + 1) * plan.tile, f.heads));
        continue;
      }
      const FastSegment s = fast_segment(f, in);
      if (marked && s.rows < f.few) continue;
      const int counted = all ? task : marked ? 0 : (in * f.few + r) * plan.tiles + tile;
      block.attend(in, s, row, tile, split, plan.splits, counted);
    }
  }
  wait_for_last();  // also where there was nothing to do
}

template <int kWidth, bool kDrop, bool kPlain>
void run(const Exec& exec, const FastAttention& f, RowsOf which) {
  constexpr int kShared = sizeof(Shared<kWidth>) + 128;
  static const bool prepared =
      cudaFuncSetAttribute(attend_row<kWidth, kDrop, kPlain>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared) ==
      cudaSuccess;
  if (!prepared) return note_launch();
  const int group = f.heads % f.kv_heads == 0 ? f.heads / f.kv_heads : 1;
  const int pieces = (group + kTileHeads - 1) / kTileHeads;
  RowPlan plan{.which = which, .tile = group % pieces == 0 ? group / pieces : kTileHeads, .splits = 1};
  plan.tiles = (f.heads + plan.tile - 1) / plan.tile;
  const int keys = f.table != nullptr ? f.table_width * f.page : f.key_rows,
            room = multiprocessors() * kBlocksEach<kWidth>;
  plan.spans = std::max((keys + kKeySpan - 1) / kKeySpan, 1);
  const bool marked = which == RowsOf::marked || which == RowsOf::marked_short;
  if (marked) {
    plan.marks = reinterpret_cast<const uint8_t*>(exec.scratch.data());
    plan.items = int64_t{which == RowsOf::marked ? (f.rows + 127) / 128 * 8 : f.segment_count * kShortMarks} * f.heads;
  } else {
    plan.partial = reinterpret_cast<float*>(exec.scratch.data());
    const int64_t tasks = int64_t{which == RowsOf::all ? f.rows : f.segment_count} * plan.tiles,
                  counted = tasks * (which == RowsOf::all ? 1 : f.few);
    const int64_t bytes = counted * plan.spans * kTileHeads * RowBlock<kWidth, kDrop, kPlain>::kPartial * 4;
    if (counted <= kMostCounted && bytes <= exec.scratch.count()) {
      plan.splits = static_cast<int>(std::clamp<int64_t>(room / std::max<int64_t>(tasks, 1), 1, plan.spans));
    }
    plan.items = tasks * plan.splits;
  }
  const int64_t blocks = marked ? std::min<int64_t>(plan.items, multiprocessors()) : plan.items;
  if (blocks <= 0) return;
  const auto grid = static_cast<unsigned>(blocks);
  if (which == RowsOf::all) {
    launch<Early::recorded>(exec, attend_row<kWidth, kDrop, kPlain>, grid, kBlockThreads, kShared, f, plan);
  } else {
    launch(exec, attend_row<kWidth, kDrop, kPlain>, grid, kBlockThreads, kShared, f, plan);
  }
}

}  // namespace

bool rows_fit(bool wide) {
  return static_cast<int64_t>(wide ? sizeof(Shared<128>) : sizeof(Shared<64>)) + 128 <= most_shared_bytes();
}

void attend_rows(const Exec& exec, const FastAttention& f, RowsOf which) {
  const bool wide = std::max(f.width, f.value_width) > 64, plain = !f.options && !f.stats;
  if (f.drop.words != nullptr) {
    run<128, true, true>(exec, f, which);  // of any width: steps of zeros leave a chain as it is, and rows are few
  } else if (wide) {
    plain ? run<128, false, true>(exec, f, which) : run<128, false, false>(exec, f, which);
  } else {
    plain ? run<64, false, true>(exec, f, which) : run<64, false, false>(exec, f, which);
  }
}

}  // namespace qkv::kernels::cuda

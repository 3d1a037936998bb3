// Attention of packed sequences of up to 128 rows and keys, without statistics: a block takes one of them and a head, and
// the copy engine brings the next one meanwhile. Order of sums: attention_fast.h.
#include "kernels/cuda/attention/attention_tile.h"
#include "kernels/cuda/tensor_map.h"

namespace qkv::kernels::cuda {
namespace {

struct ShortForm {  // a configuration as attention_tile.h knows them
  static constexpr int kWidth = 64;
  static constexpr bool kStats = false;
};
constexpr int kSequenceThreads = 256, kSequencesEach = 2;            // blocks a multiprocessor
constexpr int kOnePart = 2 * kPanel, kSequenceBytes = 3 * kOnePart;  // bytes: 128 rows of q, k or v; all three
constexpr int kSequenceShared = 2 * kSequenceBytes + 16 + 1024;

struct ShortMaps {
  CUtensorMap q, k, v;  // boxes of 64 columns of a head by 64 rows
};

__global__ void __launch_bounds__(kSequenceThreads, kSequencesEach)
    attend_sequence(const __grid_constant__ ShortMaps maps, const __grid_constant__ FastAttention f, uint8_t* marks,
                    bool backwards) {
  uint8_t* const raw = dynamic_shared();
  const uint32_t base = (shared_address(raw) + 1023) & ~1023U, barriers = base + 2 * kSequenceBytes;
  const int group = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 128, 0), lane = static_cast<int>(threadIdx.x) % 32,
            warp = static_cast<int>(threadIdx.x) % 128 / 32, quad = lane % 4;
  const int tasks = f.segment_count * f.heads, step = static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    barrier_init(barriers, 1);
    barrier_init(barriers + 8, 1);
    fence_for_barriers();
  }
  const auto call = [&](int task, int stage) {
    if (threadIdx.x != 0 || task >= tasks) return;
    if (backwards) task = tasks - 1 - task;
    const FastSegment s = fast_segment(f, task / f.heads);
    const int head = task % f.heads, kv_head = f.kv_map[head];
    const uint32_t to = base + stage * kSequenceBytes, full = barriers + 8 * stage;
    barrier_expect(full, kSequenceBytes);
    for (int b = 0; b < 2; ++b) {
      load_tile(to + b * kPanel, &maps.q, 0, head, s.first_row + 64 * b, full);
      load_tile(to + kOnePart + b * kPanel, &maps.k, 0, kv_head, s.first_key + 64 * b, full);
      load_tile(to + 2 * kOnePart + b * kPanel, &maps.v, 0, kv_head, s.first_key + 64 * b, full);
    }
  };
  wait_for_last();
  call(static_cast<int>(blockIdx.x), 0);
  int stage = 0;
  uint32_t phase = 0;
  for (int turn = static_cast<int>(blockIdx.x); turn < tasks; turn += step) {
    __syncthreads();  // the task before has been read; at first, barriers are there
    call(turn + step, stage ^ 1);
    const int task = backwards ? tasks - 1 - turn : turn;
    const FastSegment s = fast_segment(f, task / f.heads);
    const int head = task % f.heads, first = 64 * group, last = min(first + 64, s.rows) - 1;
    bool bad = false;
    barrier_wait(barriers + 8 * stage, phase);
    if (first <= last) {
      const uint32_t queries = base + stage * kSequenceBytes + group * kPanel,
                     keys = base + stage * kSequenceBytes + kOnePart, values = keys + kOnePart;
      const SeenKeys blocks = blocks_of(f, s, s.first_row + first, s.first_row + last);
      const SeenKeys whole{seen_keys(f, s.keys, s.position + last).begin, seen_keys(f, s.keys, s.position + first).end};
      RowPair rows;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = first + 16 * warp + lane / 4 + 8 * i;
        rows.row[i] = s.first_row + row;
        rows.valid[i] = row <= last;
        rows.position[i] = s.position + row;
        rows.seen[i] = rows.valid[i] ? seen_keys(f, s.keys, rows.position[i]) : SeenKeys{0, 0};
      }
      float z[32] = {}, mass[4];  // mass is of statistics
      Span<ShortForm> span;
      Best best;
#pragma unroll 1
      for (int b = blocks.begin; b < blocks.end; ++b) {
        float scores[32];
        uint32_t p[4][4];
        const bool fresh = b == blocks.begin;
        find_scores<64>(scores, queries, keys + b * kPanel);
        wgmma_wait<0>();
        const int key = b * kKeyBlock;
        if (key < whole.begin || key + kKeyBlock > whole.end) hide(scores, rows, key, quad);
        span.soften(f, scores, z, mass, best, rows, key, quad, fresh);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
          for (int i = 0; i < 4; ++i) p[k][i] = pack(scores[8 * k + 2 * i], scores[8 * k + 2 * i + 1]);
        }
        clear_values<1>(values + b * kPanel, s.keys - key, group);
        add_values<64>(z, p, values + b * kPanel, fresh);
        wgmma_wait<0>();
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        RowSums sums;
        merge<false>(sums, span.sums(i), f.unit2);
        const float by = finish_row<false>(f, sums, rows.row[i], head, quad == 0 && rows.valid[i]);
        bad = put_columns<ShortForm>(f, rows, i, head, quad, z, by) || bad;
      }
    }
    bad = __any_sync(~0U, bad);
    if (lane == 0) marks[(task / f.heads * kShortMarks + 4 * group + warp) * f.heads + head] = bad;
    stage ^= 1;
    if (stage == 0) phase ^= 1;
  }
}

}  // namespace

bool attend_short(const Exec& exec, const FastAttention& f) {
  if (!hopper()) return false;  // first: other GPUs have no such kernel to prepare
  static const bool prepared = cudaFuncSetAttribute(attend_sequence, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                    kSequenceShared) == cudaSuccess;
  ShortMaps maps{};
  const int64_t tasks = int64_t{f.segment_count} * f.heads;
  if (!prepared || std::max(f.width, f.value_width) > 64 || tasks > INT32_MAX / 2 ||
      tasks * kShortMarks > exec.scratch.count() ||
      !map_heads(maps.q, f.q, f.width, f.heads, f.rows, f.q_head, f.q_row, 64) ||
      !map_heads(maps.k, f.k, f.width, f.kv_heads, f.key_rows, f.k_head, f.k_row, 64) ||
      !map_heads(maps.v, f.v, f.value_width, f.kv_heads, f.key_rows, f.v_head, f.v_row, 64)) {
    return false;
  }
  const auto grid = static_cast<unsigned>(std::min<int64_t>(tasks, int64_t{multiprocessors()} * kSequencesEach));
  launch(exec, attend_sequence, grid, kSequenceThreads, kSequenceShared, maps, f,
         reinterpret_cast<uint8_t*>(exec.scratch.data()), goes_back());
  return true;
}

}  // namespace qkv::kernels::cuda

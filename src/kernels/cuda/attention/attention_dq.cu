// dq and delta. A block lives as long as there are tasks, tiles of rows of one head: one or two warpgroups of 64 rows
// each, and a thread that asks for the next task and loads ahead.
#include <type_traits>

#include "kernels/cuda/attention/attention_backward_parts.h"

namespace qkv::kernels::cuda {
namespace {

// kSlots: tiles of q and dz at a time. kEarly: the next block's S is begun before this block's dq, where there are
// registers for it.
template <int kWidth, int kWarpgroups, int kRowSlots, int kDepth, int kBlocksEach, int kCount, bool kAhead,
          bool kDropout>
struct DqConfig {
  static constexpr int D = kWidth, kGroups = kWarpgroups, kSlots = kRowSlots, kStages = kDepth, kTogether = kBlocksEach,
                       kRegisters = kCount;
  static constexpr bool kEarly = kAhead, kDrop = kDropout;
  static constexpr int kTile = D / 64 * kPanel, kStage = 2 * kTile, kSlot = kGroups * 2 * kTile;
  static constexpr int kSpare = kGroups > 1 ? kGroups* kTile : 0;  // copies of a key tile without NaN
  static constexpr int kSeen = kGroups * 128 * 16;
  static constexpr int kShared = kSlots * kSlot + kStages * kStage + kSpare + kSeen + 256 + 1024;
  static constexpr int kThreads = 128 * (kGroups + 1);
  static_assert(kTogether * (kShared + 1024 + 256) <= 228 * 1024);
};
template <bool kDrop>
using Dq64 = DqConfig<64, 1, 2, 2, 3, 136, false, kDrop>;
template <bool kDrop>
using Dq128 = DqConfig<128, 2, 1, 3, 1, 240, true, kDrop>;

// z is the first stage of a task, so a task begins there; as many tasks are known as stages, and one more.
constexpr int kTasks = 4;  // a multiple of twice the slots
struct DqTask {
  RowTile tile;
  int head;  // -1: there are no more
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kTogether)
    find_dq(const __grid_constant__ BackwardMaps maps, const __grid_constant__ BackwardPass pass) {
  constexpr int D = C::D, kStages = C::kStages, kGroups = C::kGroups, kSlots = C::kSlots;
  __shared__ DqTask tasks[kTasks];
  uint8_t* const raw = dynamic_shared();
  const uint32_t base = (shared_address(raw) + 1023) & ~1023U, ring = base + kSlots * C::kSlot,
                 spare = ring + kStages * C::kStage, seen_at = spare + C::kSpare + 16 * threadIdx.x,
                 barriers = spare + C::kSpare + C::kSeen;
  const auto rows_full = [&](int s) { return barriers + 8 * s; };
  const auto rows_empty = [&](int s) { return barriers + 16 + 8 * s; };
  const auto full = [&](int s) { return barriers + 32 + 8 * s; };
  const auto empty = [&](int s) { return barriers + 64 + 8 * s; };
  const int group = static_cast<int>(threadIdx.x) / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kSlots; ++s) {
      barrier_init(rows_full(s), 1);
      barrier_init(rows_empty(s), kGroups);
    }
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full(s), 1);
      barrier_init(empty(s), kGroups);
    }
    fence_for_barriers();
  }
  wait_for_last();
  __syncthreads();
  int stage = 0, turn = 0;  // of keys and values, of tasks
  uint32_t phase = 0;
  const auto next = [&] {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  };
  const auto next_task = [&] { turn = (turn + 1) % kTasks; };
  const auto slot = [&] { return turn % kSlots; };
  const auto slot_phase = [&] { return static_cast<uint32_t>(turn / kSlots % 2); };

  if (group == kGroups) {
    fewer_registers<24>();
    if (threadIdx.x != kGroups * 128) return;
    for (int task = static_cast<int>(blockIdx.x);; next_task()) {
      DqTask& now = tasks[turn];  // in shared memory: registers are short
      barrier_wait(empty(stage), phase ^ 1);
      if (task >= pass.plan.counts[0] * pass.heads) {
        now.head = -1;
        barrier_arrive(full(stage));
        return;
      }
      const int following = static_cast<int>(gridDim.x) + atomicAdd(pass.plan.taken, 1);
      now.head = task % pass.heads;
      now.tile = pass.plan.row_tiles[task / pass.heads];
      barrier_expect(full(stage), kGroups * C::kTile);
      for (int g = 0; g < kGroups; ++g) {
        const uint32_t to = ring + stage * C::kStage + g * C::kTile;
        load_head<D>(to, &maps.z, now.head, now.tile.first + g * kBlock, full(stage));
      }
      next();
      barrier_wait(rows_empty(slot()), slot_phase() ^ 1);
      barrier_expect(rows_full(slot()), C::kSlot);
      for (int g = 0; g < kGroups; ++g) {
        const uint32_t to = base + slot() * C::kSlot + g * 2 * C::kTile;
        load_head<D>(to, &maps.q, now.head, now.tile.first + g * kBlock, rows_full(slot()));
        load_head<D>(to + C::kTile, &maps.dz, now.head, now.tile.first + g * kBlock, rows_full(slot()));
      }
      const int kv_head = pass.kv_map[now.head];
      for (int b = now.tile.blocks.begin; b < now.tile.blocks.end; ++b, next()) {
        const uint32_t to = ring + stage * C::kStage;
        barrier_wait(empty(stage), phase ^ 1);
        barrier_expect(full(stage), C::kStage);
        load_head<D>(to, &maps.k, kv_head, now.tile.first_key + b * kBlock, full(stage));
        load_head<D>(to + C::kTile, &maps.v, kv_head, now.tile.first_key + b * kBlock, full(stage));
      }
      task = following;
    }
  }

  more_registers<C::kRegisters>();
  const int warp = static_cast<int>(threadIdx.x) % 128 / 32, lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4;
  const int first_row = group * kBlock, first = first_row + warp * 16 + row;  // in the tile
  const bool leader = threadIdx.x % 128 == 0;
  const auto pass_by = [&](int blocks) {  // stages of no use to this warpgroup
    if (blocks == 0) return;
    group_barrier(group);  // parities tell only the next phase from this one: nobody may lag or lead
    for (int i = 0; i < blocks; ++i, next()) {
      if (!leader) continue;
      barrier_wait(full(stage), phase);
      barrier_arrive(empty(stage));
    }
    group_barrier(group);
  };
#pragma unroll 1
  for (;; next_task()) {
    barrier_wait(full(stage), phase);
    const int head = tasks[turn].head;
    if (head < 0) return;
    const RowTile& tile = tasks[turn].tile;
    const int rows = min(tile.rows - first_row, kBlock);
    if (rows <= 0) {
      pass_by(1 + tile.blocks.count());
      if (leader) barrier_arrive(rows_empty(slot()));
      continue;
    }
    BlockRange mine = tile.blocks;  // of the warpgroup
    Sight::Interval by_all;         // keys all its rows see; those of the thread's two rows lie in shared memory
    {
      const int64_t position = int64_t{tile.position} + tile.at;
      const Sight::Interval of_first = pass.sight.keys_of(position + first_row, tile.keys),
                            of_last = pass.sight.keys_of(position + first_row + rows - 1, tile.keys);
      if constexpr (kGroups > 1) mine = blocks_over(of_first.begin, of_last.end);
      by_all = {of_last.begin, of_first.end};
#pragma unroll
      for (int i = 0; i < 2; ++i) put_shared(seen_at + 8 * i, pass.sight.keys_of(position + first + 8 * i, tile.keys));
    }
    float lse[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t at = tile.first + min(first + 8 * i, tile.rows - 1);
      lse[i] = number_at(pass.lse, at, head) * kLog2E;
    }
    Left<D, false> q, dz;
    q.take(base + slot() * C::kSlot + group * 2 * C::kTile, warp, lane);
    dz.take(q.tile + C::kTile, warp, lane);
    barrier_wait(rows_full(slot()), slot_phase());
    float2 stats[2];  // of the thread's two rows: LSE log2(e), delta
    {
      float dots[32];
      wgmma_fence();
      dz.multiply(dots, ring + stage * C::kStage + group * C::kTile);
      wgmma_commit();
      wgmma_wait<0>();
      hold(dots);
      if (leader) barrier_arrive(empty(stage));
      next();
      float delta[2];
      take_diagonal(delta, dots);
      float2* kept = pass.stats + (head * pass.plan.blocks() + tile.block + group) * kBlock + warp * 16 + row;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        stats[i] = {0, 0};
        if (first + 8 * i < tile.rows) {
          stats[i] = {fabsf(delta[i]) < INFINITY ? lse[i] : NAN, delta[i]};
          if (lane % 4 == 0) number_at(pass.delta, tile.first + first + 8 * i, head) = delta[i];
        }
        if (lane % 4 == 0) kept[8 * i] = stats[i];
      }
    }

    const float by = pass.scale * kLog2E;
    float dq[D / 2], s[32];
#pragma unroll
    for (float& x : dq) x = 0;
    const int64_t drop_at = C::kDrop ? pass.drop.at(head, 0, tile.first + first) : 0;  // rows past the tile: any bits

    // At the start of a step s holds block b's finished S if kEarly. No product is in flight across the loop's back edge.
    const auto step = [&](int b, auto more) {
      const uint32_t keys = ring + stage * C::kStage;
      const int now = stage;
      float p[32], dp[32];
      uint32_t kept = 0;
      if constexpr (C::kDrop) kept = pass.drop.parts(drop_at + int64_t{b} * pass.drop.stride, lane % 4);
      const auto find_p = [&](float(&of)[32]) {
#pragma unroll
        for (int e = 0; e < 32; ++e) p[e] = fast_exp2(fmaf(of[e], by, -stats[e / 2 % 2].x));
      };
      if constexpr (C::kEarly) {
        wgmma_fence();
        dz.multiply(dp, keys + C::kTile);
        wgmma_commit();
        find_p(s);
      } else {
        float sums[32];
        barrier_wait(full(stage), phase);
        wgmma_fence();
        q.multiply(sums, keys);
        wgmma_commit();
        dz.multiply(dp, keys + C::kTile);
        wgmma_commit();
        wgmma_wait<1>();
        hold(sums);
        find_p(sums);
      }
      next();
      if constexpr (C::kEarly && more.value) {
        hold(p);
        barrier_wait(full(stage), phase);
        wgmma_fence();
        q.multiply(s, ring + stage * C::kStage);
        wgmma_commit();
        wgmma_wait<1>();
      } else {
        wgmma_wait<0>();
      }
      hold(dp);
#pragma unroll
      for (int e = 0; e < 32; ++e) {
        const float delta = stats[e / 2 % 2].y;
        p[e] *= C::kDrop ? pass.drop.minus(dp[e], delta, kept, drop_bit(e)) : dp[e] - delta;
      }
      uint32_t right = keys;
      if (b * kBlock < by_all.begin || (b + 1) * kBlock > by_all.end) {
        const Sight::Interval seen[2] = {shared_interval(seen_at), shared_interval(seen_at + 8)};
        hide(p, seen, b * kBlock + 2 * (lane % 4));
        right = without_nan<D>(keys, kGroups > 1 ? spare + group * C::kTile : keys, kGroups > 1 ? group : 0);
      }
      uint32_t ds[4][4];
      pack(ds, p);
      wgmma_fence();
      add_product<D>(dq, ds, right);
      wgmma_commit();
      wgmma_wait<0>();
      if constexpr (C::kEarly) hold(s);
      if (leader) barrier_arrive(empty(now));
    };
    if (mine.begin < mine.end) {
      pass_by(mine.begin - tile.blocks.begin);
      if constexpr (C::kEarly) {
        barrier_wait(full(stage), phase);
        wgmma_fence();
        q.multiply(s, ring + stage * C::kStage);
        wgmma_commit();
        wgmma_wait<0>();
        hold(s);
      }
#pragma unroll 1
      for (int b = mine.begin; b + 1 < mine.end; ++b) step(b, std::true_type{});
      step(mine.end - 1, std::false_type{});
      pass_by(tile.blocks.end - mine.end);
    } else {
      pass_by(tile.blocks.count());
    }
    if (leader) barrier_arrive(rows_empty(slot()));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      put_row<D>(pass.dq, tile.first + first + 8 * i, first + 8 * i < tile.rows, head, dq, i, pass.scale);
    }
  }
}

template <class C>
void run_dq(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps) {
  launch_tasks<C, find_dq<C>>(exec, pass, maps, int64_t{pass.plan.most_row_tiles} * pass.heads);
}

}  // namespace

int dq_tile_rows(int width) {
  return kBlock * (width <= 64 ? Dq64<false>::kGroups : Dq128<false>::kGroups);
}

void find_dq_wgmma(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps) {
  if (pass.drop.words != nullptr) {
    pass.width <= 64 ? run_dq<Dq64<true>>(exec, pass, maps) : run_dq<Dq128<true>>(exec, pass, maps);
  } else {
    pass.width <= 64 ? run_dq<Dq64<false>>(exec, pass, maps) : run_dq<Dq128<false>>(exec, pass, maps);
  }
}

}  // namespace qkv::kernels::cuda

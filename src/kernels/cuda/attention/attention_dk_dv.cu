// dk and dv. A block lives as long as there are tasks, tiles of 64 keys of one key head: one warpgroup, and a thread that
// asks for the next task and loads ahead.
#include <type_traits>

#include "kernels/cuda/attention/attention_backward_parts.h"

namespace qkv::kernels::cuda {
namespace {

// kKept: k and v as fragments in registers. kEarly: the next block's S is begun before this block's dk.
template <int kWidth, int kDepth, bool kFragments, bool kAhead, bool kDropout>
struct DkDvConfig {
  static constexpr int D = kWidth, kStages = kDepth, kTogether = 2, kRegisters = 232, kThreads = 256;
  static constexpr bool kKept = kFragments, kEarly = kAhead, kDrop = kDropout;
  static constexpr int kTile = D / 64 * kPanel, kStage = 2 * kTile, kStats = kBlock * static_cast<int>(sizeof(float2));
  static constexpr int kMask = kDrop ? (kBlock + 2) * 8 : 0;  // words of the rows, from an even one on
  static constexpr int kShared = 2 * kTile + kStages * (kStage + kStats + kMask) + 128 * 16 + 256 + 1024;
  static_assert(kTogether * (kShared + 1024 + 256) <= 228 * 1024);
};

template <bool kDrop>
using DkDv64 = DkDvConfig<64, 3, true, true, kDrop>;
template <bool kDrop>
using DkDv128 = DkDvConfig<128, 2, false, false, kDrop>;

struct DkDvTask {
  KeyTile tile;
  HeadGroup group;
  int kv_head;  // -1: there are no more
};

// All keys of a tile; those past the end of its segment have sums that nobody reads.
__device__ Sight::Interval rows_that_see_all(const Sight& sight, const Asking& a, bool one_segment) {
  const bool inside = a.at >= 0 && a.at + kBlock <= a.keys;
  if (!inside && !one_segment) return {0, 0};
  const int last = min(a.at + kBlock, a.keys) - 1;
  return {sight.rows_of(last, a.position, a.rows).begin, sight.rows_of(a.at, a.position, a.rows).end};
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kTogether)
    find_dk_dv(const __grid_constant__ BackwardMaps maps, const __grid_constant__ BackwardPass pass) {
  constexpr int D = C::D, kStages = C::kStages;
  __shared__ DkDvTask tasks[2];
  uint8_t* const raw = dynamic_shared();
  const uint32_t base = (shared_address(raw) + 1023) & ~1023U, v_at = base + C::kTile, ring = v_at + C::kTile,
                 stats_at = ring + kStages * C::kStage, mask_at = stats_at + kStages * C::kStats,
                 seen_of_all = mask_at + kStages * C::kMask, barriers = seen_of_all + 128 * 16;
  const uint32_t keys_full = barriers, keys_empty = barriers + 96;
  const uint32_t block_at = barriers + 128, head_at = barriers + 160, by_all_at = barriers + 192 + threadIdx.x / 32 * 8;
  const auto full = [&](int s) { return barriers + 8 + 8 * s; };
  const auto empty = [&](int s) { return barriers + 8 + 8 * kStages + 8 * s; };
  if (threadIdx.x == 0) {
    barrier_init(keys_full, 1);
    barrier_init(keys_empty, 4);
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full(s), 1);
      barrier_init(empty(s), 4);
    }
    fence_for_barriers();
  }
  wait_for_last();
  __syncthreads();
  int stage = 0;
  uint32_t phase = 0;
  const auto next = [&] {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  };

  if (threadIdx.x >= 128) {
    fewer_registers<24>();
    if (threadIdx.x != 128) return;
    uint32_t turn = 0;
    for (int task = static_cast<int>(blockIdx.x);; turn ^= 1) {
      barrier_wait(keys_empty, turn ^ 1);
      DkDvTask& now = tasks[turn];  // in shared memory: registers are short
      if (task >= pass.plan.counts[1] * pass.kv_heads) {
        now.kv_head = -1;
        barrier_arrive(keys_full);
        return;
      }
      const int following = static_cast<int>(gridDim.x) + atomicAdd(pass.plan.taken + 1, 1);
      now.kv_head = task % pass.kv_heads;
      now.tile = pass.plan.key_tiles[task / pass.kv_heads];
      now.group = pass.plan.groups[now.kv_head];
      barrier_expect(keys_full, 2 * C::kTile);
      load_head<D>(base, &maps.k, now.kv_head, now.tile.first, keys_full);
      load_head<D>(v_at, &maps.v, now.kv_head, now.tile.first, keys_full);
      for (int n = 0; n < now.tile.segments; ++n) {
        const Asking& a = now.tile.asking;
        if (now.tile.segments > 1) now.tile.asking = asking(pass.segments, pass.plan, now.tile, n);
        for (int i = 0; i < now.group.count; ++i) {
          const int head = pass.plan.head(now.group, i);
          const float2* stats = pass.stats + (head * pass.plan.blocks() + a.first_block) * kBlock;
          for (int b = a.blocks.begin; b < a.blocks.end; ++b, next()) {
            const uint32_t to = ring + stage * C::kStage;
            barrier_wait(empty(stage), phase ^ 1);
            put_shared(block_at + 4 * stage, b * kBlock);
            if constexpr (C::kDrop) put_shared(head_at + 4 * stage, head);
            barrier_expect(full(stage), C::kStage + C::kStats + C::kMask);
            if constexpr (C::kDrop) {  // of no use, but there, where several segments ask
              const int64_t word = pass.drop.at(head, a.at / kBlock, a.first_row + b * kBlock);
              load_bytes(mask_at + stage * C::kMask, pass.drop.words + (word & ~int64_t{1}), C::kMask, full(stage));
            }
            load_head<D>(to, &maps.q, head, a.first_row + b * kBlock, full(stage));
            load_bytes(stats_at + stage * C::kStats, stats + b * kBlock, C::kStats, full(stage));
            load_head<D>(to + C::kTile, &maps.dz, head, a.first_row + b * kBlock, full(stage));
          }
        }
      }
      task = following;
    }
  }

  more_registers<C::kRegisters>();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int first = warp * 16 + lane / 4;  // key in the tile; the thread's other one is 8 further
  const float by = pass.scale * kLog2E;
  float dk[D / 2], dv[D / 2], s[32];
  Left<D, C::kKept> k, v;
  // Registers are short: the rows that see the thread's two keys, and those that see all keys, lie in shared memory.
  const uint32_t seen_at = seen_of_all + 16 * threadIdx.x;
  const auto hide_unseen = [&](float(&x)[32], int column) {
    const Sight::Interval seen[2] = {shared_interval(seen_at), shared_interval(seen_at + 8)};
    hide(x, seen, column);
  };
  // By every warp: each reads shared memory itself, not only through products.
  const auto give_back = [&](uint32_t barrier) {
    __syncwarp();
    if (lane == 0) barrier_arrive(barrier);
  };
  // Of S^T's elements, those that are kept: bit drop_bit_of_key(e) of element e. Keys that several segments share need not
  // begin where a block of the mask does: then bit by bit.
  const auto find_kept = [&](uint32_t turn, int segment) {
    const KeyTile& tile = tasks[turn].tile;
    uint32_t kept = 0;
    if (tile.segments == 1) {
      const uint32_t from = mask_at + stage * C::kMask + tile.asking.first_row % 2 * 8 + lane % 4 * 16 + lane / 4;
#pragma unroll
      for (int r = 0; r < 16; ++r) {  // row 8 (r / 2) + 2 (lane % 4) + r % 2, keys 16 warp + lane / 4 and 8 more
        kept |= (shared_byte(from + r / 2 * 64 + r % 2 * 8) >> 2 * warp & 3) << (16 * (r % 2) + r / 2 * 2);
      }
      return kept;
    }
    const Asking a = asking(pass.segments, pass.plan, tile, segment);
    const int head = shared_int(head_at + 4 * stage),
              row = a.first_row + shared_int(block_at + 4 * stage) + 2 * (lane % 4);
#pragma unroll 1
    for (int i = 0; i < 32; ++i) {
      const int key = a.at + first + i % 2 * 8;
      if (key < 0 || key >= a.keys) continue;
      if (pass.drop.keeps(head, row + i % 16 / 2 * 8 + i / 16, key)) kept |= 1U << i;
    }
    __syncwarp();  // wgmma wants whole warps
    return kept;
  };
  // At the start of a step s holds block b's finished S^T if kEarly. No product is in flight across the loop's back edge.
  const auto step = [&](auto more, uint32_t turn, int segment) {
    const uint32_t rows = ring + stage * C::kStage, dz = rows + C::kTile,
                   stats = stats_at + stage * C::kStats + lane % 4 * 16;
    const int now = stage;
    float p[32], dp[32];
    uint32_t packed[4][4];
    const auto find_p = [&](float(&of)[32]) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const float4 two = shared_float4(stats + n * 64);
        p[4 * n] = fast_exp2(fmaf(of[4 * n], by, -two.x));
        p[4 * n + 1] = fast_exp2(fmaf(of[4 * n + 1], by, -two.z));
        p[4 * n + 2] = fast_exp2(fmaf(of[4 * n + 2], by, -two.x));
        p[4 * n + 3] = fast_exp2(fmaf(of[4 * n + 3], by, -two.z));
      }
    };
    if constexpr (C::kEarly) {
      wgmma_fence();
      v.multiply(dp, dz);
      wgmma_commit();
      find_p(s);
    } else {
      float sums[32];
      barrier_wait(full(stage), phase);
      wgmma_fence();
      k.multiply(sums, rows);
      wgmma_commit();
      v.multiply(dp, dz);
      wgmma_commit();
      wgmma_wait<1>();
      hold(sums);
      find_p(sums);
    }
    [[maybe_unused]] uint32_t kept = 0;
    if constexpr (C::kDrop) kept = find_kept(turn, segment);
    const int column = shared_int(block_at + 4 * now);
    const Sight::Interval by_all = shared_interval(by_all_at);
    const bool partly = column < by_all.begin || column + kBlock > by_all.end;
    if (partly) {
      hide_unseen(p, column + 2 * (lane % 4));
      wgmma_wait<0>();
      without_nan<2 * D>(rows, rows, 0);  // and dz, which follows
    }
    pack(packed, p);
    if constexpr (C::kDrop) drop_keys(packed, kept);
    next();
    if constexpr (C::kEarly && more.value) barrier_wait(full(stage), phase);
    wgmma_fence();
    add_product<D>(dv, packed, dz);
    wgmma_commit();
    if constexpr (C::kEarly && more.value) {
      k.multiply(s, ring + stage * C::kStage);
      wgmma_commit();
      wgmma_wait<2>();
    } else {
      wgmma_wait<1>();
    }
    hold(dp);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float4 two = shared_float4(stats + n * 64);
      if constexpr (C::kDrop) {
#pragma unroll
        for (int e = 4 * n; e < 4 * n + 4; ++e) {
          p[e] *= pass.drop.minus(dp[e], e % 2 == 0 ? two.y : two.w, kept, drop_bit_of_key(e));
        }
      } else {
        p[4 * n] *= dp[4 * n] - two.y;
        p[4 * n + 1] *= dp[4 * n + 1] - two.w;
        p[4 * n + 2] *= dp[4 * n + 2] - two.y;
        p[4 * n + 3] *= dp[4 * n + 3] - two.w;
      }
    }
    if (partly) hide_unseen(p, column + 2 * (lane % 4));
    uint32_t ds[4][4];
    pack(ds, p);
    wgmma_fence();
    add_product<D>(dk, ds, rows);
    wgmma_commit();
    wgmma_wait<0>();
    if constexpr (C::kEarly) hold(s);
    give_back(empty(now));
  };
#pragma unroll 1
  for (uint32_t turn = 0;; turn ^= 1) {
    barrier_wait(keys_full, turn);
    const auto& [tile, group, kv_head] = tasks[turn];
    if (kv_head < 0) return;
#pragma unroll
    for (int i = 0; i < D / 2; ++i) dk[i] = dv[i] = 0;
    k.take(base, warp, lane);
    v.take(v_at, warp, lane);
    if constexpr (C::kKept) give_back(keys_empty);
#pragma unroll 1
    for (int n = 0; n < tile.segments; ++n) {
      const Asking a = asking(pass.segments, pass.plan, tile, n);
      const int steps = a.blocks.count() * group.count;
      if (steps == 0) continue;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int key = a.at + first + 8 * i;
        const bool inside = key >= 0 && key < a.keys;
        const Sight::Interval seen = inside ? pass.sight.rows_of(key, a.position, a.rows) : Sight::Interval{0, 0};
        put_shared(seen_at + 8 * i, seen);
      }
      put_shared(by_all_at, rows_that_see_all(pass.sight, a, tile.segments == 1));  // each thread reads what it wrote
      if constexpr (C::kEarly) {
        barrier_wait(full(stage), phase);
        wgmma_fence();
        k.multiply(s, ring + stage * C::kStage);
        wgmma_commit();
        wgmma_wait<0>();
        hold(s);
      }
#pragma unroll 1
      for (int i = 1; i < steps; ++i) step(std::true_type{}, turn, n);
      step(std::false_type{}, turn, n);
    }
    if constexpr (!C::kKept) give_back(keys_empty);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t key = tile.first + first + 8 * i;
      const bool there = first + 8 * i < tile.keys;
      put_row<D>(pass.dk, key, there, kv_head, dk, i, pass.scale);
      put_row<D>(pass.dv, key, there, kv_head, dv, i, C::kDrop ? pass.drop.scale : 1);
    }
  }
}

template <class C>
void run_dk_dv(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps) {
  launch_tasks<C, find_dk_dv<C>>(exec, pass, maps, int64_t{pass.plan.most_key_tiles} * pass.kv_heads);
}

}  // namespace

void find_dk_dv_wgmma(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps) {
  if (pass.drop.words != nullptr) {
    pass.width <= 64 ? run_dk_dv<DkDv64<true>>(exec, pass, maps) : run_dk_dv<DkDv128<true>>(exec, pass, maps);
  } else {
    pass.width <= 64 ? run_dk_dv<DkDv64<false>>(exec, pass, maps) : run_dk_dv<DkDv128<false>>(exec, pass, maps);
  }
}

}  // namespace qkv::kernels::cuda

// dq and delta: a block has one or two warpgroups of 64 rows of one head, and a warp that loads keys and values ahead.
#include <type_traits>

#include "kernels/cuda/attention_backward_parts.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

// kEarly: the next block's S is begun before this block's dq, where there are registers for it.
template <int kWidth, int kWarpgroups, int kDepth, int kBlocksEach, int kCount, bool kAhead>
struct DqConfig {
  static constexpr int D = kWidth, kGroups = kWarpgroups, kStages = kDepth, kTogether = kBlocksEach,
                       kRegisters = kCount;
  static constexpr bool kEarly = kAhead;
  static constexpr int kTile = D / 64 * kPanel, kStage = 2 * kTile;
  static constexpr int kSpare = kGroups > 1 ? kGroups* kTile : 0;  // copies of a key tile without NaN
  static constexpr int kShared = kGroups * 2 * kTile + kStages * kStage + kSpare + 256 + 1024;
  static constexpr int kThreads = 128 * (kGroups + 1);
  static_assert(kTogether * (kShared + 1024) <= 228 * 1024);
};
using Dq64 = DqConfig<64, 1, 3, 3, 136, false>;
using Dq128 = DqConfig<128, 2, 3, 1, 240, true>;

struct BlockRange {
  int begin, end;
};
// Blocks of keys that rows [first, last] of a tile see something of.
__device__ BlockRange blocks_of(const Sight& sight, const RowTile& tile, int first, int last) {
  const int64_t position = int64_t{tile.position} + tile.at;
  const int begin = sight.keys_of(position + first, tile.keys).begin,
            end = sight.keys_of(position + last, tile.keys).end;
  return begin < end ? BlockRange{begin / kBlock, (end + kBlock - 1) / kBlock} : BlockRange{0, 0};
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kTogether)
    find_dq(const __grid_constant__ BackwardMaps maps, const __grid_constant__ BackwardPass pass) {
  constexpr int D = C::D, kStages = C::kStages, kGroups = C::kGroups;
  const int head = static_cast<int>(blockIdx.y), group = static_cast<int>(threadIdx.x) / 128;
  const RowTile tile = pass.plan.row_tiles[blockIdx.x];
  const int kv_head = pass.kv_map[head];
  if (static_cast<int>(blockIdx.x) >= pass.plan.counts[0]) return;
  extern __shared__ uint8_t raw[];
  const uint32_t base = (shared_address(raw) + 1023) & ~1023U, dz_at = base + kGroups * C::kTile,
                 ring = dz_at + kGroups * C::kTile, spare = ring + kStages * C::kStage, barriers = spare + C::kSpare;
  const uint32_t rows_full = barriers;
  const auto full = [&](int s) { return barriers + 8 + 8 * s; };
  const auto empty = [&](int s) { return barriers + 8 + 8 * kStages + 8 * s; };
  if (threadIdx.x == 0) {
    barrier_init(rows_full, 1);
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full(s), 1);
      barrier_init(empty(s), kGroups);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const BlockRange all = blocks_of(pass.sight, tile, 0, tile.rows - 1);
  int stage = 0;
  uint32_t phase = 0;
  const auto next = [&] {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  };

  if (group == kGroups) {
    fewer_registers<24>();
    if (threadIdx.x != kGroups * 128) return;
    barrier_expect(rows_full, kGroups * 2 * C::kTile);
    barrier_expect(full(0), kGroups * C::kTile);
    for (int g = 0; g < kGroups; ++g) {
      const int row = tile.first + g * kBlock;
      load_head<D>(dz_at + g * C::kTile, &maps.dz, head, row, rows_full);
      load_head<D>(ring + g * C::kTile, &maps.z, head, row, full(0));
      load_head<D>(base + g * C::kTile, &maps.q, head, row, rows_full);
    }
    next();
    for (int b = all.begin; b < all.end; ++b, next()) {
      const uint32_t to = ring + stage * C::kStage;
      barrier_wait(empty(stage), phase ^ 1);
      barrier_expect(full(stage), C::kStage);
      load_head<D>(to, &maps.k, kv_head, tile.first_key + b * kBlock, full(stage));
      load_head<D>(to + C::kTile, &maps.v, kv_head, tile.first_key + b * kBlock, full(stage));
    }
    return;
  }

  more_registers<C::kRegisters>();
  const int warp = static_cast<int>(threadIdx.x) % 128 / 32, lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4;
  const int rows = min(tile.rows - group * kBlock, kBlock), first = group * kBlock + warp * 16 + row;  // in the tile
  const bool leader = threadIdx.x % 128 == 0;
  const auto pass_by = [&](int blocks) {  // stages of no use to this warpgroup
    for (int i = 0; i < blocks; ++i, next()) {
      barrier_wait(full(stage), phase);
      if (leader) barrier_arrive(empty(stage));
    }
  };
  if (rows <= 0) return pass_by(1 + all.end - all.begin);

  const int first_row = group * kBlock;
  const BlockRange mine = blocks_of(pass.sight, tile, first_row, first_row + rows - 1);
  Sight::Interval seen[2], by_all;  // of the thread's rows; what all rows of the warpgroup see
  {
    const int64_t position = int64_t{tile.position} + tile.at;
#pragma unroll
    for (int i = 0; i < 2; ++i) seen[i] = pass.sight.keys_of(position + first + 8 * i, tile.keys);
    by_all = {pass.sight.keys_of(position + first_row + rows - 1, tile.keys).begin,
              pass.sight.keys_of(position + first_row, tile.keys).end};
  }
  float lse[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int64_t at = tile.first + min(first + 8 * i, tile.rows - 1);
    lse[i] = pass.lse.get<float>(pass.lse.at(at, head)) * kLog2E;
  }
  Left<D, false> q, dz;
  q.take(base + group * C::kTile, warp, lane);
  dz.take(dz_at + group * C::kTile, warp, lane);
  barrier_wait(rows_full, 0);
  float2 stats[2];  // of the thread's two rows: LSE log2(e), delta
  {
    float dots[32];
    barrier_wait(full(0), 0);
    wgmma_fence();
    dz.multiply(dots, ring + group * C::kTile);
    wgmma_commit();
    wgmma_wait<0>();
    hold(dots);
    if (leader) barrier_arrive(empty(0));
    next();
    float diagonal[2] = {};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if (w != warp) continue;
      diagonal[0] = row % 2 == 0 ? dots[8 * w] : dots[8 * w + 1];
      diagonal[1] = row % 2 == 0 ? dots[8 * w + 6] : dots[8 * w + 7];
    }
    float2* kept = pass.stats + (head * pass.plan.blocks() + tile.block + group) * kBlock + warp * 16 + row;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float delta = __shfl_sync(0xffffffffU, diagonal[i], row * 4 + row / 2);
      stats[i] = {0, 0};
      if (first + 8 * i < tile.rows) {
        stats[i] = {fabsf(delta) < INFINITY ? lse[i] : NAN, delta};
        if (lane % 4 == 0) pass.delta.set(pass.delta.at(tile.first + first + 8 * i, head), delta);
      }
      if (lane % 4 == 0) kept[8 * i] = stats[i];
    }
  }

  const float by = pass.scale * kLog2E;
  float dq[D / 2], s[32];
#pragma unroll
  for (float& x : dq) x = 0;

  // At the start of a step s holds block b's finished S if kEarly. No product is in flight across the loop's back edge.
  const auto step = [&](int b, auto more) {
    const uint32_t keys = ring + stage * C::kStage;
    const int now = stage;
    float p[32], dp[32];
    const auto find_p = [&](float(&of)[32]) {
#pragma unroll
      for (int e = 0; e < 32; ++e) p[e] = exp2_of(fmaf(of[e], by, -stats[e / 2 % 2].x));
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
    for (int e = 0; e < 32; ++e) p[e] *= dp[e] - stats[e / 2 % 2].y;
    uint32_t right = keys;
    if (b * kBlock < by_all.begin || (b + 1) * kBlock > by_all.end) {
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
    pass_by(mine.begin - all.begin);
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
    pass_by(all.end - mine.end);
  } else {
    pass_by(all.end - all.begin);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (first + 8 * i >= tile.rows) continue;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      pass.dq.put(tile.first + first + 8 * i, head, n * 8 + 2 * (lane % 4), dq[4 * n + 2 * i] * pass.scale,
                  dq[4 * n + 2 * i + 1] * pass.scale);
    }
  }
}

template <class C>
void run(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps) {
  static const cudaError_t prepared =
      cudaFuncSetAttribute(find_dq<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kShared);
  static_cast<void>(prepared);  // else the launch fails, and says so
  const dim3 grid(pass.plan.most_row_tiles, pass.heads);
  find_dq<C><<<grid, C::kThreads, C::kShared, stream_of(exec)>>>(maps, pass);
  note_launch();
}

}  // namespace

int dq_tile_rows(int width) {
  return kBlock * (width <= 64 ? Dq64::kGroups : Dq128::kGroups);
}

void find_dq_wgmma(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps) {
  pass.width <= 64 ? run<Dq64>(exec, pass, maps) : run<Dq128>(exec, pass, maps);
}

}  // namespace qkv::kernels::cuda

// Products of many rows of bf16 on Hopper. Tiles of 128 x 128 or 128 x 192 outputs go through a ring of stages that the copy
// engine fills and wgmma reads; while one warpgroup finishes its tile, the other multiplies the next one. Where k is so long that
// the end hardly counts, tiles may have 256 or 320 columns, and both warpgroups multiply together, half the rows each.
//
// The order is that of product_mma: one chain of k16 steps per output, so both give the same bits whatever the tiles. What
// lies past the end of k arrives as zeros and leaves the sums as they are.
#include <utility>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/product_finish_narrow.h"
#include "kernels/cuda/products/product_tiles.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/cuda/wgmma.h"
#include "kernels/cuda/wgmma_layout.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kConsumers = 2, kBlockThreads = 128 * (kConsumers + 1);
constexpr int kABytes = kTileRows * 128;
constexpr int kBarrierBytes = 128, kTableBytes = 16 * ((kMostGroups + 4) / 4);
constexpr int kSharedLimit = 232448;
// What sums are joined with is called for so many steps before they are there: sooner, and others would throw it out again.
constexpr int kStepsAhead = 8;

// kA, kB: 1 where the operand lies with its rows together in memory. With kOnes, b has eight more columns in a panel that is
// never loaded, of ones and zeros: the first of them gives the sums of a.
template <int kTransposedA, int kTransposedB, FinishKind kFinishKind, int kTileColumns = 128, bool kSumsOfA = false>
struct Config {
  static constexpr int kA = kTransposedA, kB = kTransposedB;
  static constexpr bool kSets = kA == kB && (kFinishKind == FinishKind::narrow || kFinishKind == FinishKind::bare);
  using Finish = Finisher<kFinishKind, kTileColumns>;
  // A box of the copy engine has at most 256 rows.
  static constexpr int kBoxRows = kTileColumns > 256 ? kTileColumns / 2 : kTileColumns;
  static constexpr int kTile = kTileColumns, kLoaded = kABytes + kTile * 128, kRowHalves = kHalves<kTile>;
  static constexpr bool kTogether = kRowHalves == 1;
  static constexpr int kBiasBytes = Finish::kBiased ? 4 * kTile : 0;
  static constexpr int kFinishBytes = kConsumers * (4 * Finish::kBytes + kBiasBytes);
  static constexpr bool kOnes = kSumsOfA;
  static constexpr int kColumns = kTile + (kOnes ? 8 : 0), kStage = kLoaded + (kOnes ? kPanel : 0);
  static constexpr int kRest = kFinishBytes + kBarrierBytes + kTableBytes;
  static constexpr int kStages = (kSharedLimit - kRest) / kStage;
  static constexpr int kShared = kStages * kStage + kRest;
  static_assert(8 * (2 * kStages + kConsumers) <= kBarrierBytes);
};

struct Maps {
  CUtensorMap a, b;
};
struct AllMaps {
  Maps of[kMostInSet];  // of each pair of operands, or of each member
};

// Eight numbers of bf16: one, and zeros.
__device__ inline void write_one(uint32_t at) {
  put_shared(at, uint4{0x3f80});
}

// A step of k16 for 64 rows. One wgmma has at most 256 columns: of more, 192 and the rest.
template <class C, int kColumns>
__device__ __forceinline__ void multiply_columns(float* sums, uint64_t a, uint64_t b, int add) {
  if constexpr (kColumns <= 256) {
    multiply_shared<C::kA, C::kB>(reinterpret_cast<float(&)[kColumns / 2]>(*sums), a, b, add);
  } else {
    multiply_columns<C, 192>(sums, a, b, add);
    multiply_columns<C, kColumns - 192>(sums + 96, a, b + 3 * (kPanel / 16), add);
  }
}

template <class C>
__global__ void __launch_bounds__(kBlockThreads, 1)
    product_wgmma(const __grid_constant__ AllMaps maps, const __grid_constant__ Job job) {
  using Grouped = ProductArgs::Grouped;
  uint8_t* const raw = dynamic_shared<1024>();  // the ring, what ends need, barriers, groups
  constexpr int kStage = C::kStage, kLoaded = C::kLoaded, kTile = C::kTile;
  const uint32_t base = shared_address(raw), buffers = base + C::kStages * kStage,
                 biases = buffers + 8 * C::Finish::kBytes, barriers = buffers + C::kFinishBytes;
  int* const first_tiles = reinterpret_cast<int*>(raw + C::kStages * kStage + C::kFinishBytes + kBarrierBytes);
  if (base % 1024 != 0) __trap();  // swizzled panels would not be where wgmma looks for them
  const auto full = [&](int s) { return barriers + 8 * s; };
  const auto empty = [&](int s) { return barriers + 8 * C::kStages + 8 * s; };
  const auto turn = [&](int consumer) { return barriers + 16 * C::kStages + 8 * consumer; };
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      barrier_init(full(s), 1);
      barrier_init(empty(s), C::kTogether ? kConsumers : 1);
    }
    for (int consumer = 0; consumer < kConsumers; ++consumer) barrier_init(turn(consumer), 4);
    fence_for_barriers();
    prefetch_map(&maps.of[0].a);
    prefetch_map(&maps.of[0].b);
  }
  if constexpr (C::kOnes) {
    for (int i = static_cast<int>(threadIdx.x); i < C::kStages * kDepth; i += kBlockThreads) {
      const int k = i % kDepth;
      write_one(base + i / kDepth * kStage + kLoaded + k * 128 + k % 8 * 16);  // the first chunk of row k, swizzled
    }
    fence_for_copies();
  }
  wait_for_last();
  if (job.grouped == Grouped::rows && threadIdx.x < 32) count_group_tiles(job, first_tiles);
  __syncthreads();
  const TileList tiles(job, first_tiles);
  if (warpgroup == 0) {
    fewer_registers<24>();
    if (threadIdx.x != 0) return;
    int stage = 0;
    uint32_t phase = 1;
#pragma unroll 1
    for (int t = static_cast<int>(blockIdx.x); t < tiles.count; t += static_cast<int>(gridDim.x)) {
      const Tile tile = tiles(t);
      const int of_b = job.grouped == Grouped::rows ? tile.group : 0;
      int part = 0, begun = 0;  // the pair of operands, and its first step
#pragma unroll 1
      for (int step = 0; step < tile.steps; ++step) {
        if (job.more_steps > 0 && step - begun == job.part_steps[part]) {
          ++part;
          begun = step;
        }
        const Maps& from = maps.of[part + tile.member];
        const CUtensorMap &a = from.a, &b = from.b;
        const int k = tile.first_k + (step - begun) * kDepth;
        barrier_wait(empty(stage), phase);
        barrier_expect(full(stage), kLoaded);
        const uint32_t at_a = base + stage * kStage, at_b = at_a + kABytes;
        if (C::kA == 0) {
          load_tile(at_a, &a, k, tile.m, 0, full(stage));
        } else {
          for (int j = 0; j < kTileRows / 64; ++j) load_tile(at_a + j * kPanel, &a, tile.m + 64 * j, k, 0, full(stage));
        }
        if (C::kB == 0) {
          for (int j = 0; j < kTile; j += C::kBoxRows) load_tile(at_b + j * 128, &b, k, tile.n + j, of_b, full(stage));
        } else {
          for (int j = 0; j < kTile / 64; ++j) load_tile(at_b + j * kPanel, &b, tile.n + 64 * j, k, of_b, full(stage));
        }
        if (++stage == C::kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
    return;
  }
  more_registers<240>();
  const int consumer = warpgroup - 1, thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32,
            lane = thread % 32;
  uint32_t at = 0;  // steps so far, of both warpgroups
  uint32_t turns = consumer == 0 ? 1 : 0;
  bool mine = consumer == 0;
#pragma unroll 1
  for (int t = static_cast<int>(blockIdx.x); t < tiles.count; t += static_cast<int>(gridDim.x), mine = !mine) {
    if (!C::kTogether && !mine) {
      at += tiles.steps(t);
      continue;
    }
    const Tile tile = tiles(t);
    const int half_of_rows = C::kTogether ? consumer : 0;
    const Place place{tile.m + half_of_rows * 64 + warp * 16, tile.end_m, tile.n, tile.group,
                      tile.group * job.next_out};
    const Worker worker{buffers + (consumer * 4 + warp) * C::Finish::kBytes, biases + consumer * C::kBiasBytes, lane,
                        thread, 1 + consumer};
    const typename C::Finish finisher{job.finish, job.members[C::kSets ? tile.member : 0].target, place, worker};
    finisher.begin();
    const int ahead = max(tile.steps - kStepsAhead, 0);
    if (ahead == 0) finisher.call_ahead();
    int stage = static_cast<int>(at % C::kStages), before = -1;  // the stage whose products may still run
    uint32_t phase = at / C::kStages & 1;
    at += tile.steps;
    // Else this turn of a stage is mistaken for the one before the last.
    if (!C::kTogether) barrier_wait(turn(consumer), turns++ & 1);
    __syncwarp();
    // Of 64 rows each. Set, so that those of the last tile need no registers.
    float sums[C::kRowHalves][C::kColumns / 2] = {};
    const auto multiply = [&]<int kColumns>(std::integral_constant<int, kColumns>) {
#pragma unroll 1
      for (int step = 0; step < tile.steps; ++step) {
        const uint32_t at_a = base + stage * kStage, at_b = at_a + kABytes;
        if (ahead > 0 && step == ahead) finisher.call_ahead();
        barrier_wait(full(stage), phase);
        if (C::kA == 1 && C::kB == 1 && job.grouped == Grouped::inner) {
          // Rows of the next group are not this one's.
          const int rows = tile.k - (tile.first_k + step * kDepth);
          if (rows < kDepth) {
            for (int panel = 0; panel < kLoaded / kPanel; ++panel) {
              for (int i = rows * 128 + thread * 16; i < kPanel; i += 128 * 16) {
                put_shared(at_a + panel * kPanel + i, uint4{});
              }
            }
            fence_for_copies();
            worker.meet();
          }
        }
        const uint64_t tile_a = tile_descriptor(at_a + half_of_rows * kPanel, C::kA == 0 ? 16 : kPanel, 1024),
                       tile_b = tile_descriptor(at_b, C::kB == 0 ? 16 : kPanel, 1024);
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kDepth / 16; ++s) {
#pragma unroll
          for (int half = 0; half < C::kRowHalves; ++half) {
            multiply_columns<C, kColumns>(sums[half], tile_a + half * (kPanel / 16) + s * (C::kA == 0 ? 2 : 128),
                                          tile_b + s * (C::kB == 0 ? 2 : 128), s > 0 || step > 0);
          }
        }
        wgmma_commit();
        if (before >= 0) {
          wgmma_wait<1>();
          if (thread == 0) barrier_arrive(empty(before));
        }
        before = stage;
        if (++stage == C::kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
      // By each warp: else a warp that still ends its last tile could miss a turn of its own, and take the next for it.
      if (!C::kTogether && lane == 0) barrier_arrive(turn(1 - consumer));
      wgmma_wait<0>();
      if (thread == 0) barrier_arrive(empty(before));
    };
    if (C::kOnes && tile.n == 0) {
      multiply(std::integral_constant<int, C::kColumns>());
    } else {
      multiply(std::integral_constant<int, kTile>());
    }
    if constexpr (C::kOnes) {
      float* to = job.members[tile.member].target.sums_of_a;
      if (to != nullptr && tile.n == 0 && lane % 4 == 0) {
        to += tile.group * job.next_sums;
#pragma unroll
        for (int i = 0; i < 2 * C::kRowHalves; ++i) {
          const int m = place.m + i / 2 * 64 + i % 2 * 8 + lane / 4;
          if (m < tile.end_m) to[m] = sums[i / 2][kTile / 2 + i % 2 * 2];
        }
      }
    }
    constexpr int kUnitSums = 32, kHalfUnits = kTile / 2 / kUnitSums;  // of 16 x 64
    finisher.run([&](int unit) { return sums[unit / kHalfUnits] + unit % kHalfUnits * kUnitSums; });
  }
}

// Boxes of 64 numbers that lie together by `box_rows`, of an operand with `rows` rows and `inner` numbers each, or of as
// many of them as there are groups; false where the copy engine cannot take it.
bool make_map(CUtensorMap& map, const Operand& o, int64_t rows, int64_t inner, int64_t groups, int box_rows) {
  const bool transposed = o.k != 1;
  const int64_t stride = transposed ? o.k : o.row;
  const cuuint64_t dims[3] = {static_cast<cuuint64_t>(transposed ? rows : inner),
                              static_cast<cuuint64_t>(transposed ? inner : rows), static_cast<cuuint64_t>(groups)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(stride) * sizeof(__nv_bfloat16),
                                 static_cast<cuuint64_t>(groups > 1 ? o.group : stride) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[3] = {64, static_cast<cuuint32_t>(transposed ? 64 : box_rows), 1};
  return make_tensor_map(map, o.data, dims, strides, box);
}

bool loads_well(const Operand& o) {
  const int64_t stride = o.k == 1 ? o.row : o.k;
  return o.dtype == DType::bf16 && (o.k == 1 || o.row == 1) && stride % 8 == 0 && stride > 0 && o.group % 8 == 0 &&
         reinterpret_cast<uintptr_t>(o.data) % 16 == 0;
}

template <class C>
bool run(const Exec& exec, const ProductArgs& p, std::span<const Beside> beside, const Job& job) {
  AllMaps maps{};
  const int64_t groups_of_b = p.grouped == ProductArgs::Grouped::rows ? p.group_count : 1;
  const auto make = [&](Maps& to, const Operand& a, const Operand& b, int64_t m, int64_t n, int64_t k) {
    return make_map(to.a, a, m, k, 1, kTileRows) && make_map(to.b, b, n, k, groups_of_b, C::kBoxRows);
  };
  if (!make(maps.of[0], p.a, p.b, p.m, p.n, p.k)) return false;
  for (int i = 0; i < p.more_count; ++i) {
    if (!make(maps.of[1 + i], p.more[i].a, p.more[i].b, p.m, p.n, p.more[i].k)) return false;
  }
  for (size_t i = 0; i < beside.size(); ++i) {
    const auto& [a, b, size, out, bias, sums] = beside[i];
    if (!make(maps.of[1 + i], a, b, job.stacked ? size : p.m, job.stacked ? p.n : size, p.k)) return false;
  }
  static const bool prepared =
      cudaFuncSetAttribute(product_wgmma<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kShared) == cudaSuccess;
  if (!prepared) return false;
  const int64_t tiles = int64_t{job.rows} * job.columns * p.group_count * job.pieces;
  const auto grid = static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors()));
  launch(exec, product_wgmma<C>, grid, kBlockThreads, C::kShared, maps, job);
  return true;
}

// y = x w^T; dx = dy w; dw = dy^T x.
bool run(const Exec& exec, const ProductArgs& p, std::span<const Beside> beside, const Job& job, FinishKind kind) {
  using enum FinishKind;
  const auto either = [&]<int kA, int kB, FinishKind kKind, bool kSums = false>() {
    return job.tile_columns == kWideColumns ? run<Config<kA, kB, kKind, kWideColumns, kSums>>(exec, p, beside, job)
                                            : run<Config<kA, kB, kKind, 128, kSums>>(exec, p, beside, job);
  };
  const auto any = [&]<int kA, int kB, FinishKind kKind, bool kSums = false>() {
    if (job.tile_columns == kWidestColumns) {
      return run<Config<kA, kB, kKind, kWidestColumns, kSums>>(exec, p, beside, job);
    }
    if constexpr (!kSums) {
      if (job.tile_columns == kWiderColumns) return run<Config<kA, kB, kKind, kWiderColumns>>(exec, p, beside, job);
    }
    return either.template operator()<kA, kB, kKind, kSums>();
  };
  if (p.a.k != 1) {
    if (p.b.k == 1 || (kind != joined && kind != bare)) return false;
    if (kind == joined) return run<Config<1, 1, joined>>(exec, p, beside, job);
    return p.sums_of_a != nullptr ? any.operator()<1, 1, bare, true>() : any.operator()<1, 1, bare>();
  }
  const bool transposed = p.b.k != 1;
  switch (kind) {
    case wide:
      return transposed ? run<Config<0, 1, wide>>(exec, p, beside, job) : run<Config<0, 0, wide>>(exec, p, beside, job);
    case joined:
      if (transposed) return run<Config<0, 1, joined>>(exec, p, beside, job);
      if (job.tile_columns == kWidestColumns) return run<Config<0, 0, joined, kWidestColumns>>(exec, p, beside, job);
      return run<Config<0, 0, joined>>(exec, p, beside, job);
    case narrow:
      return transposed ? any.operator()<0, 1, narrow>() : either.operator()<0, 0, narrow>();
    case forward:
      return !transposed && either.operator()<0, 0, forward>();
    case backward:
      return transposed && either.operator()<0, 1, backward>();
    case bare:
      break;
  }
  return false;
}

// Rows are apart by whole chunks of `numbers` and begin with one; those of a tile are less than 2 GiB apart.
bool in_chunks(const View& v, int numbers) {
  const int64_t stride = v.rank < 2 ? 0 : v.strides[v.rank - 2];
  return v.data == nullptr ||
         ((v.dtype == DType::f32 || v.dtype == DType::bf16) && stride % numbers == 0 && stride < (1 << 22) &&
          reinterpret_cast<uintptr_t>(v.data) % static_cast<uintptr_t>(numbers * size_of(v.dtype)) == 0);
}
bool narrow_in_chunks(const View& v) {
  return v.data == nullptr || (v.dtype == DType::bf16 && in_chunks(v, 8));
}

}  // namespace

bool product_of_many_rows(const Exec& exec, const ProductArgs& p, std::span<const Beside> beside) {
  using Grouped = ProductArgs::Grouped;
  constexpr int64_t kMost = INT32_MAX / 2;
  const bool fits = hopper() && beside.size() < kMostInSet && (p.m > 64 || p.a.k != 1) && p.m > 0 && p.n > 0 &&
                    p.k > 0 && loads_well(p.a) && loads_well(p.b) && p.m < kMost && p.n < kMost && p.k < kMost &&
                    p.group_count <= kMostGroups && in_chunks(p.out, 4) && in_chunks(p.residual, 4) &&
                    in_chunks(p.bias, 2) && (p.residual.data == nullptr || !p.add) && p.out_group % 4 == 0 &&
                    (p.grouped != Grouped::inner || (p.a.k != 1 && p.b.k != 1));
  if (!fits || (p.sums_of_a != nullptr && (p.a.k == 1 || p.add || p.grouped != Grouped::none))) return false;
  for (int i = 0; i < p.more_count; ++i) {
    const ProductArgs::More& more = p.more[i];
    const bool alike = (more.a.k == 1) == (p.a.k == 1) && (more.b.k == 1) == (p.b.k == 1);
    if (!alike || more.k <= 0 || more.k >= kMost || !loads_well(more.a) || !loads_well(more.b)) return false;
  }
  const bool stacked = p.a.k != 1;
  for (const auto& [a, b, size, out, bias, sums] : beside) {
    const bool alike = (a.k == 1) == (p.a.k == 1) && (b.k == 1) == (p.b.k == 1) && out.dtype == p.out.dtype;
    const bool takes = p.grouped == Grouped::none && p.more_count == 0 && !p.add && p.residual.data == nullptr &&
                       p.fused.kind == Fused::Kind::none && (p.a.k == 1) == (p.b.k == 1) && size > 0 && size < kMost &&
                       (stacked || size % 8 == 0);
    if (!alike || !takes || !loads_well(a) || !loads_well(b) || !in_chunks(out, 8) || !in_chunks(bias, 2)) return false;
  }
  const Fused& f = p.fused;
  const int64_t columns = p.bias.data == nullptr && p.out.dtype == DType::bf16 ? std::max(p.n, p.out_columns) : p.n;
  const bool narrow = columns % 8 == 0 && !p.add && p.residual.data == nullptr && narrow_in_chunks(p.out) &&
                      narrow_in_chunks(f.gate) && narrow_in_chunks(f.pre) && narrow_in_chunks(f.dgate) && p.a.k == 1;
  if (f.kind != Fused::Kind::none && (!narrow || p.scale.data != nullptr)) return false;
  if (p.scale.data != nullptr && (p.scale.dtype != DType::f32 || p.bias.data != nullptr)) return false;
  const bool bare = stacked && p.out.dtype == DType::f32 && p.bias.data == nullptr && p.n % 2 == 0;
  const FinishKind kind = !narrow && (p.add || p.residual.data != nullptr) ? FinishKind::joined
                          : bare                                           ? FinishKind::bare
                          : !narrow                                        ? FinishKind::wide
                          : f.kind == Fused::Kind::none                    ? FinishKind::narrow
                          : f.kind == Fused::Kind::forward                 ? FinishKind::forward
                                                                           : FinishKind::backward;
  if (!beside.empty() && kind != FinishKind::narrow && kind != FinishKind::bare)
    return false;  // the others know one target
  const int64_t out_columns = narrow ? columns : p.n;
  // Tiles of all members, and the time they take.
  const auto tiles_of = [&](int64_t size, int64_t each) { return (size + each - 1) / each; };
  const auto time_of = [&](int64_t width) {
    int64_t rows = tiles_of(p.m, kTileRows), across = tiles_of(out_columns, width);
    for (const Beside& one : beside) (stacked ? rows : across) += tiles_of(one.size, stacked ? kTileRows : width);
    const int64_t tiles = rows * across * p.group_count * p.pieces;
    return static_cast<double>(tiles_of(tiles, multiprocessors())) * tile_time(width);
  };
  // Ends of f32 that are joined with others take longer than tiles of 192 columns save, and those of 320 join only what has no
  // other cases. With 256 columns that of ones would be one too many for wgmma.
  int64_t chain = p.pieces > 1 ? p.piece_k : p.k;
  for (int i = 0; i < p.more_count; ++i) chain += p.more[i].k;
  const auto takes = [&](int64_t width) {
    if (p.grouped != Grouped::none || chain < least_k(width)) return false;
    if (width == kWideColumns) return kind != FinishKind::wide && kind != FinishKind::joined;
    if (kind == FinishKind::joined) {
      const View& other = p.add ? p.out : p.residual;
      return width == kWidestColumns && p.b.k == 1 && p.a.k == 1 && p.n % 4 == 0 && p.scale.data == nullptr &&
             other.dtype == DType::f32 && p.out.dtype == DType::f32;
    }
    if (kind == FinishKind::bare) return p.sums_of_a == nullptr || width == kWidestColumns;
    return kind == FinishKind::narrow && p.b.k != 1;
  };
  int tile_columns = 128;
  for (const int64_t width : {kWideColumns, kWiderColumns, kWidestColumns}) {
    if (takes(width) && time_of(width) < time_of(tile_columns)) tile_columns = static_cast<int>(width);
  }
  Job job{.finish = {.other = Plane(p.add ? p.out : p.residual),
                     .gate = Plane(f.gate),
                     .pre = Plane(f.pre),
                     .dgate = Plane(f.dgate),
                     .form = f.form,
                     .kept = p.kept,
                     .scale = reinterpret_cast<const float*>(p.scale.data),
                     .factor = static_cast<float>(p.factor)},
          .stacked = stacked,
          .k = static_cast<int>(p.k),
          .tile_columns = tile_columns,
          .rows = static_cast<int>(tiles_of(p.m, kTileRows)),
          .columns = static_cast<int>(tiles_of(out_columns, tile_columns)),
          .pieces = static_cast<int>(p.pieces),
          .piece_k = static_cast<int>(p.pieces > 1 ? p.piece_k : p.k),
          .groups = p.groups,
          .group_count = static_cast<int>(p.group_count),
          .grouped = p.grouped};
  job.members[0] = {
      {Plane(p.out), Plane(p.bias), static_cast<int>(out_columns), p.sums_of_a}, 0, static_cast<int>(p.m)};
  for (size_t i = 0; i < beside.size(); ++i) {
    const Beside& one = beside[i];
    int& tiles = stacked ? job.rows : job.columns;
    const int each = stacked ? kTileRows : tile_columns, first = tiles * each;
    tiles += static_cast<int>(tiles_of(one.size, each));
    job.members[1 + i] = {{Plane(one.out), Plane(one.bias), static_cast<int>(stacked ? p.n : one.size), one.sums_of_a},
                          first,
                          static_cast<int>(stacked ? one.size : p.m)};
  }
  job.part_steps[0] = (job.k + kDepth - 1) / kDepth;
  for (int i = 0; i < p.more_count; ++i) {
    job.part_steps[1 + i] = static_cast<int>((p.more[i].k + kDepth - 1) / kDepth);
    job.more_steps += job.part_steps[1 + i];
  }
  job.by_piece = Divider(static_cast<uint64_t>(job.rows) * static_cast<uint64_t>(job.columns));
  job.by_band = Divider(static_cast<uint64_t>(job.columns) * kBand);
  if (p.grouped == Grouped::inner || p.pieces > 1) job.next_out = p.out_group * size_of(p.out.dtype);
  job.next_sums = p.sums_group;
  job.backwards = goes_back(!stacked);  // of rows along k the order is that of the sums
  return run(exec, p, beside, job, kind);
}

}  // namespace qkv::kernels::cuda

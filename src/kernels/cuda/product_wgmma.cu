// Products of many rows of bf16 on Hopper: tiles of 128 x N outputs, loaded by the copy engine four stages ahead and
// multiplied by two warpgroups with wgmma. The order is that of product_mma: one chain of k16 steps per output, so both
// give the same bits. What lies past the end of k arrives as zeros and leaves the sums as they are.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/tma.h"
#include "kernels/cuda/wgmma.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kRows = 128, kDepth = 64, kStages = 4, kConsumers = 2;
constexpr int kPanel = 64 * 128;  // bytes of 64 rows of 64 numbers
constexpr int kPiece = 32,
              kPieceStride = kPiece + 8;  // floats of a row on the way out; the stride has no bank conflicts
constexpr int kBarrierBytes = 128;

template <int kColumns, int kTransposedA, int kTransposedB>
struct Config {
  static constexpr int kN = kColumns, kA = kTransposedA, kB = kTransposedB;
  static constexpr int kABytes = kRows * 128, kBBytes = kN * 128, kStage = kABytes + kBBytes;
  static constexpr int kShared = kStages * kStage + kBarrierBytes + kConsumers * 64 * kPieceStride * 4 + 1024;
  static_assert(kShared <= 232448);
};

struct TileAt {
  int m, n;
};
// Tiles in groups of eight rows, so that neighbours share what is in the cache.
__device__ TileAt tile_at(int t, int rows, int columns) {
  constexpr int kGroup = 8;
  const int group = t / (kGroup * columns), first = group * kGroup, high = min(kGroup, rows - first);
  const int i = t - group * kGroup * columns;
  return {first + i % high, i / high};
}

// Two neighbouring outputs of row m.
__device__ void put_pair(const ProductArgs& p, int64_t m, int64_t n, float2 v) {
  const int64_t at = m * p.out.strides[p.out.rank - 2] + n;
  if (p.bias) {
    v.x += p.bias.get<float>(n);
    v.y += p.bias.get<float>(n + 1);
  }
  if (p.residual) {
    v.x = p.residual.get<float>(p.residual.at(m) + n) + v.x;
    v.y = p.residual.get<float>(p.residual.at(m) + n + 1) + v.y;
  }
  if (p.add) {
    v.x = p.out.get<float>(at) + v.x;
    v.y = p.out.get<float>(at + 1) + v.y;
  }
  if (p.out.dtype == DType::bf16) {
    *reinterpret_cast<__nv_bfloat162*>(reinterpret_cast<__nv_bfloat16*>(p.out.data) + at) =
        __floats2bfloat162_rn(v.x, v.y);
  } else {
    *reinterpret_cast<float2*>(reinterpret_cast<float*>(p.out.data) + at) = v;
  }
}

template <class C>
__global__ void __launch_bounds__(128 * (kConsumers + 1), 1)
    product_wgmma(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                  const __grid_constant__ ProductArgs p) {
  extern __shared__ uint8_t raw[];
  const uint32_t base = (shared_address(raw) + 1023) & ~1023U, barriers = base + kStages * C::kStage;
  const auto full = [&](int s) { return barriers + 8 * s; };
  const auto empty = [&](int s) { return barriers + 8 * kStages + 8 * s; };
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full(s), 1);
      barrier_init(empty(s), kConsumers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int tile_rows = static_cast<int>((p.m + kRows - 1) / kRows),
            tile_columns = static_cast<int>((p.n + C::kN - 1) / C::kN);
  const int tiles = tile_rows * tile_columns, steps = static_cast<int>((p.k + kDepth - 1) / kDepth);
  int stage = 0;
  uint32_t phase = 0;
  const auto next = [&] {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  };
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x != 0) return;
    for (int t = static_cast<int>(blockIdx.x); t < tiles; t += static_cast<int>(gridDim.x)) {
      const TileAt tile = tile_at(t, tile_rows, tile_columns);
      const int m = tile.m * kRows, n = tile.n * C::kN;
      for (int step = 0; step < steps; ++step, next()) {
        barrier_wait(empty(stage), phase ^ 1);
        barrier_expect(full(stage), C::kStage);
        const uint32_t at_a = base + stage * C::kStage, at_b = at_a + C::kABytes;
        if (C::kA == 0) {
          load_tile(at_a, &a, step * kDepth, m, full(stage));
        } else {
          for (int j = 0; j < kRows / 64; ++j) load_tile(at_a + j * kPanel, &a, m + 64 * j, step * kDepth, full(stage));
        }
        if (C::kB == 0) {
          load_tile(at_b, &b, step * kDepth, n, full(stage));
        } else {
          for (int j = 0; j < C::kN / 64; ++j) load_tile(at_b + j * kPanel, &b, n + 64 * j, step * kDepth, full(stage));
        }
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  const int consumer = warpgroup - 1, thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32,
            lane = thread % 32;
  float sums[C::kN / 2];
#pragma unroll 1
  for (int t = static_cast<int>(blockIdx.x); t < tiles; t += static_cast<int>(gridDim.x)) {
    const TileAt tile = tile_at(t, tile_rows, tile_columns);
    int before = -1;  // the stage whose products may still run
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const uint32_t at_a = base + stage * C::kStage + consumer * kPanel, at_b = base + stage * C::kStage + C::kABytes;
      const uint64_t tile_a = C::kA == 0 ? tile_descriptor(at_a, 16, 1024) : tile_descriptor(at_a, kPanel, 1024);
      const uint64_t tile_b = C::kB == 0 ? tile_descriptor(at_b, 16, 1024) : tile_descriptor(at_b, kPanel, 1024);
      barrier_wait(full(stage), phase);
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < kDepth / 16; ++s) {
        Wgmma<C::kN>::template multiply<C::kA, C::kB>(sums, tile_a + s * (C::kA == 0 ? 2 : 128),
                                                      tile_b + s * (C::kB == 0 ? 2 : 128), s > 0 || step > 0);
      }
      wgmma_commit();
      if (before >= 0) {
        wgmma_wait<1>();
        if (thread == 0) barrier_arrive(empty(before));
      }
      before = stage;
      next();
    }
    wgmma_wait<0>();
    if (thread == 0) barrier_arrive(empty(before));
    // Sixteen rows a warp: through shared memory, 32 columns at a time, so that rows are written in whole sectors.
    const int64_t first_m = tile.m * kRows + consumer * 64 + warp * 16 + lane / 16;
    const int64_t first_n = tile.n * C::kN + 2 * (lane % 16);
    float* mine = reinterpret_cast<float*>(raw + (base - shared_address(raw)) + kStages * C::kStage + kBarrierBytes) +
                  (consumer * 4 + warp) * 16 * kPieceStride;
#pragma unroll
    for (int piece = 0; piece < C::kN / kPiece; ++piece) {
#pragma unroll
      for (int j = 0; j < kPiece / 8; ++j) {
        const int at = lane / 4 * kPieceStride + 8 * j + 2 * (lane % 4), of = 4 * (kPiece / 8 * piece + j);
        *reinterpret_cast<float2*>(mine + at) = make_float2(sums[of], sums[of + 1]);
        *reinterpret_cast<float2*>(mine + at + 8 * kPieceStride) = make_float2(sums[of + 2], sums[of + 3]);
      }
      __syncwarp();
      const int64_t n = first_n + kPiece * piece;
#pragma unroll 4
      for (int r = 0; r < 16; r += 2) {
        if (first_m + r < p.m && n < p.n) {
          put_pair(p, first_m + r, n,
                   *reinterpret_cast<const float2*>(mine + (r + lane / 16) * kPieceStride + 2 * (lane % 16)));
        }
      }
      __syncwarp();
    }
  }
}

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

EncodeTiled encode_tiled() {
  static const EncodeTiled function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return code == cudaSuccess ? reinterpret_cast<EncodeTiled>(found) : nullptr;
  }();
  return function;
}

// Boxes of 64 columns by `rows` rows of a matrix; false where the copy engine cannot take it.
bool make_map(CUtensorMap& map, const std::byte* data, int64_t columns, int64_t rows, int64_t row_stride,
              int box_rows) {
  const cuuint64_t dims[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(row_stride) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[2] = {64, static_cast<cuuint32_t>(box_rows)}, steps[2] = {1, 1};
  return encode_tiled() != nullptr &&
         encode_tiled()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<std::byte*>(data), dims, strides, box,
                        steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Of an operand with `rows` rows and p.k numbers each; transposed: its rows lie together in memory.
bool map_operand(CUtensorMap& map, const Operand& o, int64_t rows, int64_t inner, int box_rows) {
  return o.k == 1 ? make_map(map, o.data, inner, rows, o.row, box_rows) : make_map(map, o.data, rows, inner, o.k, 64);
}

bool loads_well(const Operand& o) {
  const int64_t stride = o.k == 1 ? o.row : o.k;
  return o.dtype == DType::bf16 && (o.k == 1 || o.row == 1) && stride % 8 == 0 && stride > 0 &&
         reinterpret_cast<uintptr_t>(o.data) % 16 == 0;
}

template <int kColumns, int kA, int kB>
bool run(const Exec& exec, const ProductArgs& p) {
  using C = Config<kColumns, kA, kB>;
  CUtensorMap a{}, b{};
  if (!map_operand(a, p.a, p.m, p.k, kRows) || !map_operand(b, p.b, p.n, p.k, kColumns)) return false;
  static const bool prepared =
      cudaFuncSetAttribute(product_wgmma<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kShared) == cudaSuccess;
  if (!prepared) return false;
  const int64_t tiles = (p.m + kRows - 1) / kRows * ((p.n + kColumns - 1) / kColumns);
  const auto grid = static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors()));
  product_wgmma<C><<<grid, 128 * (kConsumers + 1), C::kShared, stream_of(exec)>>>(a, b, p);
  note_launch();
  return true;
}

template <int kColumns>
bool run(const Exec& exec, const ProductArgs& p) {
  const bool a = p.a.k != 1, b = p.b.k != 1;
  if (a) return b ? run<kColumns, 1, 1>(exec, p) : run<kColumns, 1, 0>(exec, p);
  return b ? run<kColumns, 0, 1>(exec, p) : run<kColumns, 0, 0>(exec, p);
}

}  // namespace

bool product_of_many_rows(const Exec& exec, const ProductArgs& p) {
  const bool pairs =
      p.n % 2 == 0 && p.out.strides[p.out.rank - 2] % 2 == 0 && reinterpret_cast<uintptr_t>(p.out.data) % 8 == 0;
  const bool fits = p.grouped == ProductArgs::Grouped::none && p.m > 64 && p.k > 0 && pairs && loads_well(p.a) &&
                    loads_well(p.b) && (p.out.dtype == DType::bf16 || p.out.dtype == DType::f32) &&
                    p.m < INT32_MAX / 2 && p.n < INT32_MAX / 2 && p.k < INT32_MAX / 2;
  if (!fits) return false;
  return p.n >= 1024 ? run<256>(exec, p) : run<128>(exec, p);
}

}  // namespace qkv::kernels::cuda

// Products of few rows of bf16, as decoding makes them: the weights are the tall side of wgmma, streamed once through a
// ring of shared memory. One chain of k16 steps per output, as product_mma and product_wgmma: the same bits.
//
//   block      kTile rows of weights, all rows of x          kStages stages of kBlocks x 64 columns
//   warp 4     calls for tiles; weights before the kernels ahead have ended, x after
//   warps 0-3  multiply, then finish: bias, activation, gate, residual
//
// The ring is walked unrolled, so that every address is a register plus a constant.
#include <array>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/product_skinny.h"
#include "kernels/cuda/products/product_skinny_finish.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/cuda/wgmma.h"
#include "kernels/cuda/wgmma_layout.h"

namespace qkv::kernels::cuda {
namespace {

using namespace skinny;

constexpr int64_t up(int64_t size, int64_t each) {
  return (size + each - 1) / each;
}

constexpr int kSliceRows = 64, kMostRows = 4 * kSliceRows, kThreadsEach = 160, kBarrierBytes = 512,
              kMostBlocksAcross = 65535;  // of a grid

// kAhead stages of weights are called for before the kernels ahead have ended. The copy engine brings things in turn, so that all of a
// deep ring would keep x waiting where blocks begin late.
template <int kTileRows, int kXRows, int kBlocksEach, int kStageCount, int kAheadCount = kStageCount>
struct Ring {
  static constexpr int kTile = kTileRows, kRows = kXRows, kBlocks = kBlocksEach, kStages = kStageCount,
                       kAhead = kAheadCount;
  static constexpr int kWBytes = kTile * 128, kXBytes = kRows * 128, kStage = kBlocks * (kWBytes + kXBytes);
  static constexpr int kTileShift = kTile == 64 ? 6 : kTile == 32 ? 5 : 4;
  static constexpr int kSlack = 64 * 128 - kWBytes;  // wgmma reads 64 rows; what it makes of the rest is dropped
  static constexpr int kShared = kStages * kStage + kSlack + kBarrierBytes + 1024;
  static_assert(kShared <= 232448 && 16 * kStages <= kBarrierBytes);
};

// Rows that are not there cost the copy engine more than those that are, so a box of x has as many as there are, in whole eights.
__host__ __device__ constexpr int in_eights(int rows) {
  return (rows + 7) / 8 * 8;
}

struct Job {
  CUtensorMap x, short_x, w[kMostInSet];  // short_x: where rows are fewer than a tile has
  Piece pieces[kMostInSet];
  int count = 1, m = 0, k = 0;
  bool paired = false;  // piece 0 is the gate of piece 1: a block has as many rows of both
  bool apart = false;   // a box is one block of 64 columns: k may end inside, or the tile has two parts
};

template <class C>
__global__ void __launch_bounds__(kThreadsEach) product_skinny(const __grid_constant__ Job job) {
  uint8_t* const raw = dynamic_shared();
  const uint32_t base = (shared_address(raw) + 1023) & ~1023U, barriers = base + C::kStages * C::kStage + C::kSlack;
  const auto full = [&](int s) { return barriers + 8 * s; };
  const auto empty = [&](int s) { return barriers + 8 * C::kStages + 8 * s; };
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  constexpr bool kInSlices = C::kRows == kSliceRows;
  const int block = static_cast<int>(blockIdx.y), first_m = kInSlices ? kSliceRows * static_cast<int>(blockIdx.x) : 0;
  const int piece = job.paired                                      ? 0
                    : job.count > 2 && block >= job.pieces[2].first ? 2
                    : job.count > 1 && block >= job.pieces[1].first ? 1
                                                                    : 0;
  const int first_n = (block - job.pieces[piece].first) * (job.paired ? C::kTile / 2 : C::kTile);
  const int steps = (job.k + 64 * C::kBlocks - 1) / (64 * C::kBlocks);

  const int rows_here = kInSlices ? min(job.m - first_m, kSliceRows) : job.m, box_rows = in_eights(rows_here);
  const bool is_short = C::kRows > 8 && box_rows < C::kRows;
  const uint64_t policy = read_once();
  const auto load_w = [&](int step, int s) {
    const uint32_t to = base + s * C::kStage;
    if (!job.apart) return load_tile(to, &job.w[piece], 0, first_n, step * C::kBlocks, full(s), policy);
    for (int b = 0; b < C::kBlocks; ++b) {
      const int x = (step * C::kBlocks + b) * 64;
      load_tile(to + b * C::kWBytes, &job.w[piece], x, first_n, 0, full(s), policy);
      if (job.paired) load_tile(to + b * C::kWBytes + C::kWBytes / 2, &job.w[1], x, first_n, 0, full(s), policy);
    }
  };
  const auto load_x = [&](int step, int s) {
    const uint32_t to = base + s * C::kStage + C::kBlocks * C::kWBytes;
    if (!job.apart && !is_short) return load_tile(to, &job.x, 0, first_m, step * C::kBlocks, full(s));
    const CUtensorMap* from = is_short ? &job.short_x : &job.x;
    for (int b = 0; b < C::kBlocks; ++b) {
      load_tile(to + b * C::kXBytes, from, (step * C::kBlocks + b) * 64, first_m, 0, full(s));
    }
  };
  const auto expect = [&](int s) {
    barrier_expect(full(s), C::kStage - (is_short ? C::kBlocks * (C::kRows - box_rows) * 128 : 0));
  };
  if (threadIdx.x == 128) {
    prefetch_map(&job.x);
    for (int s = 0; s < C::kStages; ++s) {
      barrier_init(full(s), 1);
      barrier_init(empty(s), 1);
    }
    fence_for_barriers();
    fence_for_copies();
    for (int s = 0; s < C::kAhead && s < steps; ++s) {
      expect(s);
      load_w(s, s);
    }
  }
  __syncthreads();
  wait_for_last();
  let_next_start();  // not before: the next one's weights would delay what the kernel before still reads
  if (warp == 4) {
    if (lane != 0) return;
    for (int s = 0; s < C::kAhead && s < steps; ++s) load_x(s, s);
    for (int s = C::kAhead; s < C::kStages && s < steps; ++s) {
      expect(s);
      load_w(s, s);
      load_x(s, s);
    }
    for (int step = C::kStages, s = 0, phase = 0; step < steps; ++step) {
      barrier_wait(empty(s), phase);
      expect(s);
      load_w(step, s);
      load_x(step, s);
      if (++s == C::kStages) {
        s = 0;
        phase ^= 1;
      }
    }
    return;
  }
  const Piece& p = job.pieces[job.paired ? 1 : piece];
  const Finish<C::kTile + 4, C::kRows == 8 ? 1 : 4> finish(p, job.paired ? &job.pieces[0] : nullptr, first_m, rows_here,
                                                           first_n, job.paired ? C::kTileShift - 1 : C::kTileShift);

  float sums[C::kRows / 2];
#pragma unroll
  for (int i = 0; i < C::kRows / 2; ++i) sums[i] = 0;
  const uint64_t tile = tile_descriptor(base, 16, 1024);
  const int rounds = (steps + C::kStages - 1) / C::kStages;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int s = 0; s < C::kStages; ++s) {
      if (round * C::kStages + s >= steps) break;
      barrier_wait(full(s), round & 1);
      wgmma_fence();
#pragma unroll
      for (int b = 0; b < C::kBlocks; ++b) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int w = s * C::kStage + b * C::kWBytes, x = s * C::kStage + C::kBlocks * C::kWBytes + b * C::kXBytes;
          multiply_shared(sums, tile + w / 16 + 2 * k, tile + x / 16 + 2 * k);
        }
      }
      wgmma_commit();
      if (s > 0) {
        wgmma_wait<1>();
        if (threadIdx.x == 0) barrier_arrive(empty(s - 1));
      }
    }
    wgmma_wait<0>();
    if (threadIdx.x == 0) barrier_arrive(empty(C::kStages - 1));
  }
  auto* rows = reinterpret_cast<float*>(raw + (base - shared_address(raw)));  // [kRows][kTile + 4]
  meet<1, 128>();                                                             // the ring is not read any more
  if (16 * warp < C::kTile) {
#pragma unroll
    for (int i = 0; i < C::kRows / 2; ++i) {
      const int m = i / 4 * 8 + 2 * (lane % 4) + i % 2, n = 16 * warp + lane / 4 + i % 4 / 2 * 8;
      rows[m * (C::kTile + 4) + n] = sums[i];
    }
  }
  meet<1, 128>();
  if (p.gate || p.pre || p.form.act.kind != Activation::Kind::identity) {
    finish.through(rows, p);
  } else {
    finish.plainly(rows);
  }
}

// Boxes of `blocks` x `rows` x 64 columns of t [rows, k]: blocks of 64 columns are an axis, or where `apart` one at a
// time is taken from all columns. What lies outside arrives as zeros.
bool make_boxes(CUtensorMap& map, const Tensor& t, bool apart, int rows, int blocks) {
  const auto columns = static_cast<cuuint64_t>(t.dim(1)), stride = static_cast<cuuint64_t>(t.stride(0)) * 2;
  const cuuint64_t dims[3] = {apart ? columns : 64, static_cast<cuuint64_t>(t.dim(0)), apart ? 1 : columns / 64};
  const cuuint64_t strides[2] = {stride, apart ? stride : 128};
  const cuuint32_t box[3] = {64, static_cast<cuuint32_t>(rows), apart ? 1U : static_cast<cuuint32_t>(blocks)};
  return make_tensor_map(map, t.data(), dims, strides, box);
}

template <class C>
bool run(const Exec& exec, Job& job, std::span<const LinearArgs> all) {
  const int tile = job.paired ? C::kTile / 2 : C::kTile;
  int blocks = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    job.pieces[i].first = blocks;
    if (!job.paired || i == 0) blocks += static_cast<int>(up(job.pieces[i].n, tile));
    if (!make_boxes(job.w[i], all[i].w, job.apart, tile, C::kBlocks)) return false;
  }
  const int rest = (job.m - 1) % C::kRows + 1;
  if (!make_boxes(job.x, all[0].x, job.apart, C::kRows, C::kBlocks) ||
      !make_boxes(job.short_x, all[0].x, true, in_eights(rest), 1)) {
    return false;
  }
  static const bool prepared =
      cudaFuncSetAttribute(product_skinny<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kShared) == cudaSuccess;
  if (!prepared) return false;
  if (blocks > kMostBlocksAcross) return false;
  const dim3 grid(static_cast<unsigned>(up(job.m, C::kRows)), static_cast<unsigned>(blocks));
  launch<Early::recorded>(exec, product_skinny<C>, grid, kThreadsEach, C::kShared, job);
  return true;
}

constexpr int64_t kFewOutputs = 6144;  // then smaller tiles, so that more multiprocessors have one

template <class Few, class Many>
bool run(const Exec& exec, Job& job, std::span<const LinearArgs> all, int64_t outputs) {
  return outputs <= kFewOutputs ? run<Few>(exec, job, all) : run<Many>(exec, job, all);
}

bool loads_well(const Tensor& t) {
  return t.format() == Format(DType::bf16) && t.rank() == 2 && t.stride(1) == 1 && t.stride(0) % 8 == 0 &&
         t.stride(0) > 0 && reinterpret_cast<uintptr_t>(t.data()) % 16 == 0;
}
bool fits_plane(const Tensor& t) {
  return !t.defined() || ((t.dtype() == DType::f32 || t.dtype() == DType::bf16) && t.stride(0) < INT32_MAX);
}

bool fits(const LinearArgs& a, const LinearArgs& first) {
  const Epilogue& e = a.epilogue;
  return !a.groups.defined() && a.w.format().plain() && a.x.data() == first.x.data() && a.x.rows() <= kMostRows &&
         a.x.rows() > 0 && a.x.cols() > 0 && a.y.cols() > 0 && loads_well(a.x) && loads_well(a.w) && fits_plane(a.y) &&
         fits_plane(a.b) && fits_plane(e.gate) && fits_plane(e.pre) && fits_plane(e.residual) &&
         a.w.dim(0) < INT32_MAX / 2 && a.w.dim(1) < INT32_MAX / 2;
}

// Whether slices of 64 rows take less time than tiles of 128 x 128, which have a launch for each of two weights that are gated.
// In us of an H200: slices wait for the cache that all share, a tile for what one multiprocessor can read.
bool slices_are_faster(const Job& job, std::span<const LinearArgs> all, int64_t outputs) {
  constexpr double kBytesInTime = 7.5e6, kTileStep = 0.55, kTileEnds = 9, kSliceEnds = 3;
  const int64_t tile = outputs <= kFewOutputs ? 32 : 64, blocks = up(outputs, tile) * up(job.m, kSliceRows),
                launches = job.paired ? 2 : 1, across = up(job.paired ? all[0].y.cols() : outputs, 128),
                waves = launches * up(up(job.m, 128) * across, multiprocessors());
  const double steps = static_cast<double>(job.k) / 64,
               of_slices = kSliceEnds + steps * static_cast<double>(blocks * (tile + kSliceRows) * 128) / kBytesInTime;
  return of_slices < static_cast<double>(waves) * (kTileEnds + steps * kTileStep);
}

}  // namespace

bool products_of_few_rows(const Exec& exec, std::span<const LinearArgs> all) {
  if (!hopper()) return false;
  const LinearArgs& first = all.front();
  Job job{.count = static_cast<int>(all.size()),
          .m = static_cast<int>(first.x.rows()),
          .k = static_cast<int>(first.x.cols())};
  int64_t outputs = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!fits(all[i], first)) return false;
    const Epilogue& e = all[i].epilogue;
    job.pieces[i] = {.y = Plane(all[i].y),
                     .bias = Plane(all[i].b),
                     .residual = Plane(e.residual),
                     .gate = Plane(e.gate),
                     .pre = Plane(e.pre),
                     .form = e.form,
                     .n = static_cast<int>(all[i].y.cols())};
    outputs += all[i].y.cols();
  }
  const auto gated_by = [&](size_t i) {
    return all[i].epilogue.gate.defined() && all[i].epilogue.gate.data() == first.y.data();
  };
  job.paired = all.size() == 2 && gated_by(1);
  job.apart = job.paired || job.k % 64 != 0;
  const bool one_slice = job.m <= kSliceRows;
  if (!one_slice && !slices_are_faster(job, all, outputs)) return false;
  const bool fewest = outputs <= 2640 && !job.paired;  // tiles of 16 give every multiprocessor one
  if (job.m <= 8) {
    const bool one_wave = outputs <= 4224 && !job.paired && job.k >= 4096;  // long chains: a deep ring hides more
    if (one_wave) return fewest ? run<Ring<16, 8, 4, 16, 6>>(exec, job, all) : run<Ring<32, 8, 2, 20>>(exec, job, all);
    return run<Ring<32, 8, 2, 10>, Ring<64, 8, 1, 11>>(exec, job, all, outputs);
  }
  if (job.m <= 16) return run<Ring<32, 16, 2, 8>, Ring<64, 16, 1, 10>>(exec, job, all, outputs);
  if (job.m <= 32) {
    if (fewest)
      return job.k < 4096 ? run<Ring<16, 32, 2, 8>>(exec, job, all) : run<Ring<16, 32, 2, 16, 6>>(exec, job, all);
    return run<Ring<32, 32, 2, 6>, Ring<64, 32, 2, 4>>(exec, job, all, outputs);
  }
  if (fewest && one_slice) return run<Ring<16, 64, 2, 5>>(exec, job, all);
  return run<Ring<32, 64, 2, 4>, Ring<64, 64, 2, 3>>(exec, job, all, outputs);
}

}  // namespace qkv::kernels::cuda

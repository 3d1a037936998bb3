// Products with weights in blocks, y = x w^T, as docs/kernels.md defines them and with the CPU's bits: x is rounded to
// int8, the integer tensor core adds a block exactly, and blocks are added in order, each operation rounded on its own:
//
//   y = y + float(I) * (d * s);   y = y + float(M) * (m * s)
//
// few rows of x    a block of threads per sixteen rows of weights; its warps take blocks of the row, their terms pass
//                  through shared memory and are added in order by a thread per output
// more rows        a warp per sixteen rows of weights and 32 rows of x, block by block
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/block_rows.h"
#include "kernels/cuda/products/blocks.h"

namespace qkv::kernels::cuda {
namespace {

using namespace blocks;

constexpr int kFewRows = 8, kManyTiles = 4, kManyWarps = 4;

__device__ void put_output(const BlockJob& job, int64_t matrix, int m, int o, float sum) {
  const int n = static_cast<int>(job.first) + m;
  if (job.bias) sum += job.bias.get(static_cast<int>(matrix), o);
  job.y.set(n, o, job.residual ? job.residual.get(n, o) + sum : sum);
}

template <class W>
__global__ void __launch_bounds__(kThreads, 2) block_product_few(const __grid_constant__ BlockJob job) {
  // A slab is kEach chunks of 32 columns for every warp; a wide block is all a warp has of it.
  constexpr int kEach = W::kMinima && W::kElements == 32 ? 4 : 8, kStride = 20, kTerms = kFewRows * kStride;
  constexpr int kBlocks = kWarps * kEach * 32 / W::kElements;
  __shared__ float terms[kBlocks * kTerms], low_terms[W::kMinima ? kBlocks * kTerms : 1];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int panel = static_cast<int>(blockIdx.x), chunks = job.inner / 32, in_block = chunks_in_block<W>(job);
  const int64_t matrix = blockIdx.z;
  const W w(job, matrix, panel, lane);
  w.call_for(min(warp * kEach, chunks - 1));  // before the kernels ahead have ended
  let_next_start();
  wait_for_last();
  const RowRange range = rows_of(job, matrix);
  const int row = static_cast<int>(threadIdx.x) % 16, column = static_cast<int>(threadIdx.x) / 16;
  for (int m = range.begin; m < range.end; m += kFewRows) {
    float sum = 0;
    for (int first = 0; first < chunks; first += kWarps * kEach) {
      BlockSums s;
#pragma unroll kEach / 2
      for (int i = 0; i < kEach; ++i) {
        const int chunk = first + warp * kEach + i, b = chunk / in_block, c = chunk % in_block;
        if (chunk >= chunks) break;
        uint32_t a[4];
        w.words(chunk, a);
        if (c == 0) s = BlockSums();
        add_chunk(job, w, s, a, chunk, b, c, m, range.end - 1);
        if (c + 1 < in_block) continue;
        const int at = (warp * kEach + i) / in_block * kTerms;
        const float d[2] = {w.scale_of(b, 0), w.scale_of(b, 1)};
        const float low[2] = {w.minimum_of(b, 0), w.minimum_of(b, 1)};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int x = 2 * (lane % 4) + j % 2, to = at + x * kStride + lane / 4 + j / 2 * 8;
          const float scale = job.scales[static_cast<int64_t>(min(m + x, range.end - 1)) * (job.inner / job.block) + b];
          terms[to] = static_cast<float>(s.total[j]) * (d[j / 2] * scale);
          if (W::kMinima) low_terms[to] = static_cast<float>(s.lowest[j]) * (low[j / 2] * scale);
        }
      }
      __syncthreads();
      if (column < kFewRows) {
        const int blocks = min(chunks - first, kWarps * kEach) / in_block;
#pragma unroll 4
        for (int b = 0; b < blocks; ++b) {
          sum += terms[b * kTerms + column * kStride + row];
          if (W::kMinima) sum += low_terms[b * kTerms + column * kStride + row];
        }
      }
      __syncthreads();
    }
    const int o = panel * 16 + row;
    if (column < kFewRows && m + column < range.end && o < job.outputs) put_output(job, matrix, m + column, o, sum);
  }
}

template <class W>
__global__ void __launch_bounds__(32 * kManyWarps) block_product_many(const __grid_constant__ BlockJob job) {
  let_next_start();
  wait_for_last();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int panel = static_cast<int>(blockIdx.x) * kManyWarps + warp;
  const int64_t matrix = blockIdx.z;
  const RowRange range = rows_of(job, matrix);
  const int m = range.begin + static_cast<int>(blockIdx.y) * 8 * kManyTiles;
  if (m >= range.end || panel * 16 >= job.outputs) return;
  const W w(job, matrix, panel, lane);
  const int blocks = job.inner / job.block, in_block = chunks_in_block<W>(job);
  float sums[kManyTiles][4] = {};
  for (int b = 0; b < blocks; ++b) {
    BlockSums s[kManyTiles];
#pragma unroll 1
    for (int c = 0; c < in_block; ++c) {
      uint32_t a[4];
      w.words(b * in_block + c, a);
#pragma unroll
      for (int tile = 0; tile < kManyTiles; ++tile) {
        add_chunk(job, w, s[tile], a, b * in_block + c, b, c, m + 8 * tile, range.end - 1);
      }
    }
    const float d[2] = {w.scale_of(b, 0), w.scale_of(b, 1)}, low[2] = {w.minimum_of(b, 0), w.minimum_of(b, 1)};
#pragma unroll
    for (int tile = 0; tile < kManyTiles; ++tile) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int x = min(m + 8 * tile + 2 * (lane % 4) + j % 2, range.end - 1);
        const float scale = job.scales[static_cast<int64_t>(x) * blocks + b];
        sums[tile][j] += static_cast<float>(s[tile].total[j]) * (d[j / 2] * scale);
        if (W::kMinima) sums[tile][j] += static_cast<float>(s[tile].lowest[j]) * (low[j / 2] * scale);
      }
    }
  }
#pragma unroll
  for (int tile = 0; tile < kManyTiles; ++tile) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int x = m + 8 * tile + 2 * (lane % 4) + j % 2, o = panel * 16 + lane / 4 + j / 2 * 8;
      if (x < range.end && o < job.outputs) put_output(job, matrix, x, o, sums[tile][j]);
    }
  }
}

// Rows of x as bytes, a warp per block: s = max |x| / 127, q = round to even (x (127 / max)).
void round_to_bytes(const Exec& exec, const Tensor& from, int64_t block, int part, int8_t* q, float* scales,
                    int32_t* sums) {
  const View x(from);
  const int64_t inner = from.cols(), blocks = inner / block;
  each_thread(exec, from.rows() * blocks * 32, [=] __device__(int64_t i) {
    const int64_t r = i / 32 / blocks, b = i / 32 % blocks, lane = i % 32, first = b * block;
    float highest = 0;
    bool finite = true;
    for (int64_t k = first + lane; k < first + block; k += 32) {
      const float v = fabsf(x.get<float>(x.row(r) + k));
      highest = fmaxf(highest, v);
      finite = finite && isfinite(v);
    }
    highest = warp_max(highest);
    finite = __all_sync(0xffffffffU, finite);
    const bool small = highest < kSmallestScaled;
    const float inverse = finite && !small ? 127 / highest : 0;
    for (int64_t k = first + lane; k < first + block; k += 32) {
      const int v = finite ? static_cast<int>(nearbyintf(x.get<float>(x.row(r) + k) * inverse)) : 0;
      q[r * inner + k] = static_cast<int8_t>(v);
      int sum = v;
      for (int lanes = part / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lanes);
      if (lane % part == 0) sums[(r * inner + k) / part] = sum;
    }
    if (lane == 0) scales[r * blocks + b] = !finite ? NAN : small ? 0 : highest / 127;
  });
}

template <class W>
void run(const Exec& exec, const BlockJob& job, int64_t matrices) {
  const auto panels = static_cast<unsigned>((job.outputs + 15) / 16), z = static_cast<unsigned>(matrices);
  if (job.rows <= kFewRows && job.block <= 256) {
    return launch<Early::recorded>(exec, block_product_few<W>, dim3(panels, 1, z), kThreads, 0, job);
  }
  const auto y = static_cast<unsigned>((job.rows + 8 * kManyTiles - 1) / (8 * kManyTiles));
  launch(exec, block_product_many<W>, dim3((panels + kManyWarps - 1) / kManyWarps, y, z), 32 * kManyWarps, 0, job);
}

void run(const Exec& exec, const BlockJob& job, int64_t matrices, Block block) {
  switch (block) {
    case Block::q8:
      return run<PanelRows<false>>(exec, job, matrices);
    case Block::q4:
      return run<PanelRows<true>>(exec, job, matrices);
    case Block::q8_0:
      return run<GgufRows<Q8_0>>(exec, job, matrices);
    case Block::q4_0:
      return run<GgufRows<Q4_0>>(exec, job, matrices);
    case Block::q4_1:
      return run<GgufRows<Q4_1>>(exec, job, matrices);
    case Block::q5_0:
      return run<GgufRows<Q5_0>>(exec, job, matrices);
    case Block::q5_1:
      return run<GgufRows<Q5_1>>(exec, job, matrices);
    case Block::q2_k:
      return run<GgufRows<Q2K>>(exec, job, matrices);
    case Block::q3_k:
      return run<GgufRows<Q3K>>(exec, job, matrices);
    case Block::q4_k:
      return run<GgufRows<Q4K>>(exec, job, matrices);
    case Block::q5_k:
      return run<GgufRows<Q5K>>(exec, job, matrices);
    case Block::q6_k:
      return run<GgufRows<Q6K>>(exec, job, matrices);
    case Block::mxfp4:
      return run<GgufRows<Mxfp4>>(exec, job, matrices);
    case Block::none:
      return;
  }
}

}  // namespace

void product_blocks(const Exec& exec, const LinearArgs& a, const Tensor& y) {
  const auto narrow = [](const Tensor& t) {
    return !t.defined() || t.dtype() == DType::f32 || t.dtype() == DType::bf16;
  };
  if (!narrow(y) || !narrow(a.b) || !narrow(a.epilogue.residual)) return product_blocks_in_double(exec, a, y);
  const Format format = a.w.format();
  const int64_t inner = a.x.cols(), outputs = a.w.dim(-2), matrices = a.w.rank() == 3 ? a.w.dim(0) : 1;
  const int64_t block = !format.panels() ? format.block_elements() : format.group > 0 ? format.group : inner;
  const bool halves = format.block == Block::q2_k || format.block == Block::q3_k || format.block == Block::q6_k;
  BlockJob job{.w = reinterpret_cast<const uint8_t*>(a.w.data()),
               .outputs = static_cast<int>(outputs),
               .inner = static_cast<int>(inner),
               .block = static_cast<int>(block),
               .part = halves ? 16 : 32,
               .groups = a.groups.defined() ? a.groups.as<int32_t>() : nullptr,
               .y = Plane(y),
               .bias = Plane(a.b),
               .residual = Plane(a.epilogue.residual)};
  job.row_bytes = format.panels() ? PanelLayout(format, inner).bytes() : format.bytes_for(inner);
  job.matrix_bytes = job.row_bytes * (format.panels() ? (outputs + kPanelRows - 1) / kPanelRows : outputs);
  const int64_t each = inner + 4 * (inner / block) + 4 * (inner / job.part);  // bytes of a row in scratch
  const int64_t at_once = std::min(exec.scratch.count() / (each + 64), int64_t{kMostAcross} * 8 * kManyTiles);
  for (int64_t first = 0; first < y.rows(); first += at_once) {
    const int64_t rows = std::min(at_once, y.rows() - first);
    auto* scales = reinterpret_cast<float*>(exec.scratch.data());
    auto* sums = reinterpret_cast<int32_t*>(scales + rows * (inner / block));
    auto* q = reinterpret_cast<int8_t*>(sums + rows * (inner / job.part));
    round_to_bytes(exec, a.x.slice(0, first, rows), block, job.part, q, scales, sums);
    job.q = q;
    job.scales = scales;
    job.sums = sums;
    job.first = first;
    job.rows = rows;
    run(exec, job, matrices, format.block);
  }
}

}  // namespace qkv::kernels::cuda

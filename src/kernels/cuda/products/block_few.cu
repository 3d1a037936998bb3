// Products of few rows with weights in blocks, as decoding makes them (block_product.cu): a block of threads per sixteen
// rows of weights, whose warps take blocks of the row. What a warp multiplies next is on its way before it is needed, at the start
// before the kernels ahead have ended. Terms pass through shared memory and are added in order by a thread per output.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/block_rows.h"

namespace qkv::kernels::cuda::blocks {
namespace {

constexpr int kRowsAtOnce = 32;

// A slab is kEach chunks of 32 columns for every warp; a wide block is all a warp has of it.
template <class W, int kEach>
__global__ void __launch_bounds__(kThreads, 2) product_few(const __grid_constant__ BlockJob job) {
  constexpr bool kWide = W::kElements == 256;
  constexpr int kStride = 20, kTerms = 8 * kStride, kSlab = kWarps * kEach, kAhead = 4;  // slabs called for ahead
  constexpr int kBlocks = kWarps * kEach * 32 / W::kElements;
  __shared__ float terms[kBlocks * kTerms], low_terms[W::kMinima ? kBlocks * kTerms : 1], sums[kRowsAtOnce * 16];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int chunks = job.inner / 32;
  const BlockChunks<W> each(job);
  const int64_t matrix = blockIdx.z;
  Chunk<W> parts[kEach];
  BlockScales scales[kWide ? 1 : kEach];
  const BlockPiece& piece = job.piece_of(static_cast<int>(blockIdx.x));
  const int panel = static_cast<int>(blockIdx.x) - piece.first;
  const W w(job, piece, matrix, panel, lane);
  const auto call_for = [&](int first) {
    const int mine = first + warp * kEach;
    const auto place = w.place(mine < chunks ? mine : 0);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      parts[i] = chunk_of<W>(place, i);
      if (!kWide || i == 0) scales[i] = scales_of<W>(place, i);
    }
    if (first == 0) {
      for (int slab = 1; slab < kAhead; ++slab) w.call_for(min(mine + slab * kSlab, chunks - kEach));
    }
    w.call_for(min(mine + kAhead * kSlab, chunks - kEach));
  };
  if (job.groups == nullptr) call_for(0);
  wait_for_last();
  let_next_start();
  const RowRange range = rows_of(job, matrix);
  if (range.begin >= range.end) return;
  if (job.groups != nullptr) call_for(0);
  const int row = static_cast<int>(threadIdx.x) % 16, column = static_cast<int>(threadIdx.x) / 16;
  int begin = range.begin, first = 0;
#pragma unroll 1
  for (;;) {
    const int end = min(begin + kRowsAtOnce, range.end), last = end - 1;
    const bool ends = first + kSlab >= chunks, more = !ends || end < range.end;
#pragma unroll 1
    for (int m = begin; m < end; m += 8) {
      const int8_t* const x = job.q + static_cast<int64_t>(min(m + lane / 4, last)) * job.inner;
      const int mine[2] = {min(m + 2 * (lane % 4), last), min(m + 2 * (lane % 4) + 1, last)};
      if (const int my_first = first + warp * kEach; my_first < chunks) {
        uint2 bytes[kEach];
        float of_x[kWide ? 1 : kEach][2];
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          bytes[i] = W::of_x(x + 32 * (my_first + i), lane % 4);
          if (kWide && i > 0) continue;
          const int of_block = each.block_of(my_first + i) * job.stride;
          of_x[i][0] = job.scales[of_block + mine[0]];
          of_x[i][1] = job.scales[of_block + mine[1]];
        }
        BlockSums<W> s;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          const int c = W::kChunks == 1 ? 0 : kWide ? i : each.in_block(my_first + i);
          if (c == 0) s = BlockSums<W>();
          add_chunk(s, parts[i], bytes[i], [&](int part, int of) {
            return job.sums[((my_first + i) * kPartsOfChunk<W> + part) * job.stride + mine[of]];
          });
          if (c + 1 < each.count) continue;
          const int at = each.block_of(warp * kEach + i) * kTerms + lane / 4;
          const BlockScales& of = scales[kWide ? 0 : i];
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const float by = of_x[kWide ? 0 : i][j % 2];
            const int to = at + (2 * (lane % 4) + j % 2) * kStride + j / 2 * 8;
            terms[to] = s.number(s.total[j]) * (of.d[j / 2] * by);
            if (W::kMinima) low_terms[to] = s.number(s.lowest[j]) * (of.low[j / 2] * by);
          }
        }
      }
      if (m + 8 >= end && more) call_for(ends ? 0 : first + kSlab);
      __syncthreads();
      if (column < 8 && m + column < end) {
        float& kept = sums[16 * (m - begin + column) + row];
        float sum = first == 0 ? 0 : kept;
        const int blocks = each.block_of(min(chunks - first, kSlab) - 1) + 1;
#pragma unroll 8
        for (int b = 0; b < blocks; ++b) {
          sum += terms[b * kTerms + column * kStride + row];
          if (W::kMinima) sum += low_terms[b * kTerms + column * kStride + row];
        }
        const int o = 16 * panel + row;
        if (!ends) {
          kept = sum;
        } else if (o < piece.outputs) {
          put_output(piece, job, matrix, m + column, o, sum);
        }
      }
      __syncthreads();
    }
    if (!more) return;
    first = ends ? 0 : first + kSlab;
    if (ends) begin = end;
  }
}

}  // namespace

bool block_product_few(const Exec& exec, BlockJob& job, int64_t matrices, Block block) {
  const bool wide = job.block > 128;
  if (job.block > 256 || job.inner % (wide ? 256 : 128) != 0) return false;
  const dim3 grid(blocks_across<1>(job), 1, static_cast<unsigned>(matrices));
  with_rows(job, block, [&]<class W> {
    const auto start = [&](auto kernel) { launch<Early::recorded>(exec, kernel, grid, kThreads, 0, job); };
    if constexpr (W::kPanels) {
      if (job.inner % 256 == 0) return start(product_few<W, 8>);
    }
    constexpr int kEach = W::kChunks == 8 ? 8 : 4;
    start(product_few<W, kEach>);
  });
  return true;
}

}  // namespace qkv::kernels::cuda::blocks

// Products of many rows with weights in blocks (block_product.cu): a block of threads has 64 rows of x, each of its warps 16 rows of
// weights, block by block of the row. Bytes of x pass through shared memory, two stages of 256 columns, weights come straight
// to the registers.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/block_rows.h"

namespace qkv::kernels::cuda::blocks {
namespace {

constexpr int kRows = 64, kColumns = 256, kChunks = kColumns / 32;

template <class W>
inline constexpr int kRowBytes = kColumns + (W::kPanels ? 32 : 16);  // so that a warp's reads meet in no bank

template <class W>
struct Stage {
  int8_t x[kRows * kRowBytes<W>];
  float scales[kChunks * kRows];
  int32_t sums[W::kMinima ? kPartsOfChunk<W> * kChunks * kRows : 4];
};

// kTiles: of eight rows of x, that a warp has. As many panels of weights as there are warps for.
template <class W, int kTiles>
__global__ void __launch_bounds__(kThreads, 2) product_many(const __grid_constant__ BlockJob job) {
  constexpr int kShares = 8 / kTiles, kParts = kPartsOfChunk<W>;
  const int threads = static_cast<int>(blockDim.x), panels = threads / (32 * kShares);
  constexpr int kAtOnce = W::kStep == 8 ? 8 : 2;  // chunks
  __shared__ __align__(16) Stage<W> stages[2];
  let_next_start();
  wait_for_last();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const BlockPiece& piece = job.piece_of(static_cast<int>(blockIdx.x));
  const int panel = panels * (static_cast<int>(blockIdx.x) - piece.first) + warp % panels;
  const int64_t matrix = blockIdx.z;
  const RowRange range = rows_of(job, matrix);
  const int m = range.begin + static_cast<int>(blockIdx.y) * kRows, last = range.end - 1;
  if (m > last) return;
  const W w(job, piece, matrix, min(panel, piece.panels() - 1), lane);
  const int chunks = job.inner / 32, last_chunk = (chunks - 1) / kAtOnce * kAtOnce;
  const BlockChunks<W> each(job);

  const auto load = [&](int first, Stage<W>& to) {
    const int here = min(chunks - first, kChunks);
    for (int i = thread; i < kRows * 2 * kChunks; i += threads) {
      const int r = i / (2 * kChunks), at = i % (2 * kChunks);
      if (at >= 2 * here) continue;
      fetch_chunk<16>(shared_address(to.x + r * kRowBytes<W> + 16 * at),
                      job.q + static_cast<int64_t>(min(m + r, last)) * job.inner + 32 * first + 16 * at);
    }
    const int first_block = each.block_of(first), blocks = each.block_of(first + here - 1) + 1 - first_block;
    for (int i = thread; i < blocks * kRows; i += threads) {
      fetch_chunk<4>(shared_address(to.scales + i),
                     job.scales + (first_block + i / kRows) * job.stride + min(m + i % kRows, last));
    }
    if constexpr (W::kMinima) {
      for (int i = thread; i < here * kParts * kRows; i += threads) {
        fetch_chunk<4>(shared_address(to.sums + i),
                       job.sums + (first * kParts + i / kRows) * job.stride + min(m + i % kRows, last));
      }
    }
    end_of_chunks();
  };

  const int my_first = warp / panels * 8 * kTiles, g = lane / 4, t = lane % 4;  // of the rows of x
  float sums[kTiles][4] = {};
  BlockSums<W> s[kTiles];
  Chunk<W> part = chunk_of<W>(w.place(0), 0);  // one ahead
  BlockScales scale = scales_of<W>(w.place(0), 0);
  load(0, stages[0]);
#pragma unroll 1
  for (int first = 0; first < chunks; first += kChunks) {
    const Stage<W>& stage = stages[first / kChunks % 2];
    if (first + kChunks < chunks) {
      w.call_for(first + kChunks);
      load(first + kChunks, stages[(first / kChunks + 1) % 2]);
      wait_for_chunks<1>();
    } else {
      wait_for_chunks<0>();
    }
    __syncthreads();
    const int here = min(chunks - first, kChunks);
    const int8_t* const x = stage.x + (my_first + g) * kRowBytes<W>;
    const float* const scales = stage.scales + my_first + 2 * t;
    const int32_t* const x_sums = stage.sums + my_first + 2 * t;
#pragma unroll 1
    for (int c = 0; c < here; c += kAtOnce) {
      const auto place = w.place(first + c), next = w.place(min(first + c + kAtOnce, last_chunk));
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (kAtOnce == 2 && i > 0 && c + i >= here) break;
        const int chunk = first + c + i, at = W::kChunks == 1 ? 0 : W::kChunks == 8 ? i : each.in_block(chunk);
        const bool ends = i + 1 == kAtOnce;
        Chunk<W> next_part = part;
        BlockScales next_scale = scale;
        if (kAtOnce == 8 || ends || chunk + 1 < chunks) {
          next_part = chunk_of<W>(ends ? next : place, ends ? 0 : i + 1);
          next_scale = scales_of<W>(ends ? next : place, ends ? 0 : i + 1);
        }
        const int b = (each.block_of(chunk) - each.block_of(first)) * kRows;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const int8_t* const from = x + 8 * tile * kRowBytes<W> + 32 * (c + i);
          if (at == 0) s[tile] = BlockSums<W>();
          add_chunk(s[tile], part, W::of_x(from, t),
                    [&](int p, int of) { return x_sums[((c + i) * kParts + p) * kRows + 8 * tile + of]; });
          if (at + 1 < each.count) continue;
          const float2 of_x = *reinterpret_cast<const float2*>(scales + b + 8 * tile);
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const float by = j % 2 == 0 ? of_x.x : of_x.y;
            sums[tile][j] += s[tile].number(s[tile].total[j]) * (scale.d[j / 2] * by);
            if (W::kMinima) sums[tile][j] += s[tile].number(s[tile].lowest[j]) * (scale.low[j / 2] * by);
          }
        }
        part = next_part;
        scale = next_scale;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int n = m + my_first + 8 * tile + 2 * t + j % 2, o = panel * 16 + g + j / 2 * 8;
      if (n <= last && o < piece.outputs) put_output(piece, job, matrix, n, o, sums[tile][j]);
    }
  }
}

}  // namespace

void block_product_many(const Exec& exec, BlockJob& job, int64_t matrices, Block block) {
  const auto down = static_cast<unsigned>((job.rows + kRows - 1) / kRows), deep = static_cast<unsigned>(matrices),
             processors = static_cast<unsigned>(multiprocessors());
  with_rows(job, block, [&]<class W> {
    const auto start = [&](auto kernel, unsigned across, int threads) {
      launch(exec, kernel, dim3(across, down, deep), threads, 0, job);
    };
    if constexpr (W::kChunks == 1 && !W::kMinima) {
      if (const unsigned across = blocks_across<8>(job); 5 * across * down >= 4 * processors) {
        return start(product_many<W, 8>, across, 256);
      }
    }
    if (const unsigned across = blocks_across<4>(job); across * down >= processors) {
      return start(product_many<W, 4>, across, 256);
    }
    start(product_many<W, 4>, blocks_across<1>(job), 64);  // so that more multiprocessors have one
  });
}

}  // namespace qkv::kernels::cuda::blocks

#include <cmath>

#include "kernels/cuda/attention/attention_drop.h"
#include "kernels/cuda/attention/attention_tiles.h"
#include "kernels/cuda/formulas.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kMaskRows = 64, kMaskThreads = 256, kMaskTogether = kMaskThreads / kMaskRows;  // blocks of keys at a time

struct Dropping {
  uint64_t* words;
  int blocks, stride;
  const int32_t* segments;
  int segment_count, rows;
  Sight sight;
  uint32_t key0, key1, least;  // numbers below `least` are dropped
  uint64_t first_row;

  // Of columns 64 block ... of a row and head, as kernels/ref/attention_scores.h counts them.
  __device__ uint64_t word(int row, int head, int block) const {
    const uint64_t random_row = first_row + static_cast<uint64_t>(row);
    const uint64_t first = (static_cast<uint64_t>(head) << 32 | static_cast<uint64_t>(block) * kBlock) / 4;
    uint32_t halves[2] = {};
#pragma unroll 1
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {  // keys 8 j + 4 h + c
        const FourWords four = random_four(key0, key1, random_row, first + static_cast<uint64_t>(2 * j + h));
        uint32_t bits = 0;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const bool kept = four.c[c] >= least;
          bits |= static_cast<uint32_t>(kept) << 8 * c;
        }
        halves[h] |= bits << j;
      }
    }
    return halves[0] | static_cast<uint64_t>(halves[1]) << 32;
  }
};

// A block of threads: 64 rows and one head.
__global__ void __launch_bounds__(kMaskThreads) drop_mask(const __grid_constant__ Dropping d) {
  __shared__ int segment_of[kMaskRows];
  wait_for_last();
  const int thread = static_cast<int>(threadIdx.x), first = static_cast<int>(blockIdx.x) * kMaskRows,
            head = static_cast<int>(blockIdx.y);
  if (thread < kMaskRows) segment_of[thread] = -1;
  __syncthreads();
  for (int n = thread; n < d.segment_count; n += kMaskThreads) {
    const int32_t* s = d.segments + 6 * static_cast<int64_t>(n);
    const int from = max(s[1] - first, 0), to = min(s[1] + s[2] - first, kMaskRows);
    for (int r = from; r < to; ++r) segment_of[r] = n;
  }
  __syncthreads();
  const int r = thread % kMaskRows, row = first + r, n = segment_of[r];
  if (n < 0 || row >= d.rows) return;
  const int32_t* s = d.segments + 6 * static_cast<int64_t>(n);
  const Sight::Interval seen = d.sight.keys_of(int64_t{s[5]} + row - s[1], s[4]);
  const BlockRange blocks = blocks_over(seen.begin, seen.end);
  for (int b = blocks.begin + thread / kMaskRows; b < blocks.end; b += kMaskTogether) {
    d.words[(int64_t{head} * d.blocks + b) * d.stride + row] = d.word(row, head, b);
  }
}

}  // namespace

DropMask find_drop_mask(Exec& exec, const AttentionInput& in, StreamMemory& memory) {
  const int64_t rows = in.q.dim(0), heads = in.q.dim(1), blocks = (in.longest_keys + kBlock - 1) / kBlock,
                stride = (rows + 15) / 16 * 16, words = heads * blocks * stride + kDropSpare;
  if (blocks == 0) return {};
  const int64_t bytes = words * static_cast<int64_t>(sizeof(uint64_t)), count = exec.scratch.count();
  std::byte* mask = nullptr;
  if (const int64_t left = (count - bytes) / 128 * 128; left >= count / 8) {
    mask = exec.scratch.data() + left;
    exec.scratch = exec.scratch.view({count}).slice(0, 0, left);
  } else {
    mask = memory.take(bytes);
    if (mask == nullptr) return {};
  }
  Dropping d{.words = reinterpret_cast<uint64_t*>(mask),
             .blocks = static_cast<int>(blocks),
             .stride = static_cast<int>(stride),
             .segments = reinterpret_cast<const int32_t*>(in.segments.data()),
             .segment_count = static_cast<int>(in.segments.dim(0)),
             .rows = static_cast<int>(rows),
             .sight = {.causal = in.causal, .window = in.window, .chunk = in.chunk},
             .key0 = in.dropout.key[0],
             .key1 = in.dropout.key[1],
             // A word's upper 24 bits times 2^-24 are at least p: in integers, and exact.
             .least = static_cast<uint32_t>(std::ceil(std::ldexp(in.dropout.p, 24))) << 8,
             .first_row = in.dropout.first_row};
  const dim3 grid(static_cast<unsigned>((rows + kMaskRows - 1) / kMaskRows), static_cast<unsigned>(heads));
  launch(exec, drop_mask, grid, kMaskThreads, 0, d);
  return {.words = d.words, .blocks = d.blocks, .stride = d.stride, .scale = 1 / (1 - in.dropout.p)};
}

}  // namespace qkv::kernels::cuda

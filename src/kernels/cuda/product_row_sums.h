// A weight's gradient dw = dy^T x has every number of dy in shared memory: the bias' gradient, sums over the rows of dy, is
// made there too, by the warps that wait for the tensor cores.
#pragma once

#include "kernels/cuda/product_tiles.h"

namespace qkv::kernels::cuda {

constexpr int kPanel = 64 * 128;  // bytes of 64 rows of 64 numbers

// Sums over k of the rows of a, which lie with 64 of them together: of a step a thread has eight rows and every eighth k.
struct RowSums {
  float of[8] = {};

  __device__ void add(uint32_t at_a, int thread) {
    const int k = thread / 8 % 8;
    const uint32_t from = at_a + thread / 64 * kPanel + k * 128 + (thread % 8 ^ k) * 16;
#pragma unroll
    for (int i = 0; i < kDepth / 8; ++i) {
      const uint4 v = read_chunk(from + i * 1024);
      const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 two = unpack(words[j]);
        of[2 * j] += two.x;
        of[2 * j + 1] += two.y;
      }
    }
  }
  // The eighths of a warp as a tree; row_sums gets those of k % 8 below 4, then the others.
  __device__ void put(const Job& job, const Tile& tile, int thread) {
#pragma unroll
    for (int far = 8; far < 32; far *= 2) {
#pragma unroll
      for (float& sum : of) sum += __shfl_xor_sync(0xffffffffU, sum, far);
    }
    if (thread % 32 >= 8) return;
    const int m = tile.m + thread / 64 * 64 + thread % 8 * 8;
    float* to = job.row_sums + (2 * static_cast<int64_t>(tile.group) + thread / 32 % 2) * job.m;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (m + i < tile.end_m) to[m + i] = of[i];
    }
  }
};

}  // namespace qkv::kernels::cuda

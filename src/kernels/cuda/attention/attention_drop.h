// Dropout of probabilities in the fast forms of attention. Which are kept is found first, as bits in scratch: tiles have no
// time for Philox.
//
// Of a head, a block of 64 keys (from key 0 of the segment) and a row of q one word. Key 8 j + c of the block is bit 8 c + j,
// so that lane t of the four that share a row of a product's sums, which has c = 2 t and one more, has its bits together.
#pragma once

#include <cuda_runtime.h>

#include "core/kernels.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/stream_memory.h"

namespace qkv::kernels::cuda {

struct DropMask {
  const uint64_t* words = nullptr;  // [H, blocks, stride]; null where nothing is dropped. Only those of keys that a row
                                    // sees are written; kDropSpare more may be read
  int blocks = 0, stride = 0;       // stride is even
  float scale = 1;                  // of what is kept: 1 / (1 - p)

  __device__ int64_t at(int head, int block, int row) const { return (int64_t{head} * blocks + block) * stride + row; }
  // The 16 bits of a word that lane t has.
  __device__ uint32_t part(int64_t word, int t) const {
    return __ldg(reinterpret_cast<const unsigned short*>(words + word) + t);
  }
  // The same of two rows, 8 apart; the first has the low bits.
  __device__ uint32_t parts(int64_t word, int t) const { return part(word, t) | part(word + 8, t) << 16; }
  __device__ bool keeps(int head, int row, int key) const {
    const int c = key % 64;
    return (words[at(head, key / 64, row)] >> (c % 8 * 8 + c / 8) & 1) != 0;
  }
  // keep dp - delta, where `bit` of `kept` says whether keep is 0.
  __device__ __forceinline__ float minus(float dp, float delta, uint32_t kept, int bit) const {
    const float d = fmaf(scale, dp, -delta);
    return (kept >> bit & 1) != 0 ? d : -delta;
  }
};
inline constexpr int kDropSpare = 256;  // words behind the last

// Which bit of parts() is that of element e of a product's 64 x 64 sums.
__device__ constexpr int drop_bit(int e) {
  return 16 * (e / 2 % 2) + 8 * (e % 2) + e / 4;
}
// A left operand of 64 x 64 packed numbers without those that are dropped: a bit moved to the top of its byte becomes 16.
__device__ __forceinline__ void drop(uint32_t (&p)[4][4], uint32_t kept) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const uint32_t tops = kept << (7 - j);
    p[j / 2][j % 2 * 2] &= permute_bytes(tops, 0x9988);
    p[j / 2][j % 2 * 2 + 1] &= permute_bytes(tops, 0xbbaa);
  }
}

// Finds the mask of a call with dropout. It lies at the end of exec.scratch, which is then so much shorter, or, where less
// than an eighth would be left for the forms themselves, in `memory`. Without words where there are no keys.
DropMask find_drop_mask(Exec& exec, const AttentionInput& in, StreamMemory& memory);

}  // namespace qkv::kernels::cuda

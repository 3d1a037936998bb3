// Sums in double over a whole tensor. A block has a run of pieces of 1024 numbers, a thread four of each piece; a tree over
// the block; then the blocks, at most 1024, in the same way. It follows from the count alone.
#pragma once

#include "kernels/cuda/packed.h"

namespace qkv::kernels::cuda {

// How a tensor is cut: `each` numbers a block.
struct TotalParts {
  static constexpr int64_t kPiece = 4 * kThreads, kMost = 1024;
  int64_t each = 0, blocks = 0;

  explicit TotalParts(int64_t count) {
    const int64_t pieces = std::max<int64_t>((count + kPiece - 1) / kPiece, 1);
    each = (pieces + kMost - 1) / kMost * kPiece;
    blocks = std::max<int64_t>((count + each - 1) / each, 1);
  }
};

// The sum of term(x) over the numbers from `begin` to `end`, by all threads of a block.
template <class A, class Term>
__device__ double block_total(const A& x, int64_t begin, int64_t end, const Term& term) {
  double sum = 0;
#pragma unroll A::kUnroll
  for (int64_t i = begin + 4 * threadIdx.x; i < end; i += TotalParts::kPiece) {
    typename A::Real v[4] = {};
    if constexpr (A::kUnroll > 1) {
      x.load(0, i, v);
    } else {
      for (int k = 0; k < 4 && i + k < end; ++k) x.load(0, i + k, reinterpret_cast<typename A::Real(&)[1]>(v[k]));
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += term(static_cast<double>(v[k]));
  }
  return block_sum(sum);
}

// Of the blocks' sums, which other blocks may have written.
__device__ inline double total_of_blocks(const double* partial, int64_t blocks) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < blocks; i += kThreads) sum += __ldcg(partial + i);
  return block_sum(sum);
}

}  // namespace qkv::kernels::cuda

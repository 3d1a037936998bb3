// A launch of products of one x with weights in blocks of one format (block_product.cu).
#pragma once

#include "kernels/cuda/products/product_skinny_finish.h"

namespace qkv::kernels::cuda::blocks {

using skinny::Plane;

inline constexpr int kFewRows = 64;  // of x, for block_few.cu; of more, block_many.cu is faster

// One of the products of a launch.
struct BlockPiece {
  const uint8_t* w = nullptr;
  int64_t matrix_bytes = 0;
  int outputs = 0, first = 0;  // blocks of the grid before its own
  Plane y, bias, residual;

  __host__ __device__ int panels() const { return (outputs + 15) / 16; }
};

// Products of one x in one format.
struct BlockJob {
  BlockPiece pieces[kMostInSet];
  int count = 0;
  int64_t row_bytes = 0;  // a row of panels: a panel
  int inner = 0, block = 0;
  const int8_t* q = nullptr;
  const float* scales = nullptr;  // [blocks of columns, stride]
  const int32_t* sums = nullptr;  // of q, [parts of columns, stride]
  int stride = 0;
  int64_t first = 0, rows = 0;  // of x, in q
  const int32_t* groups = nullptr;

  __device__ const BlockPiece& piece_of(int block_of_grid) const {
    return count > 2 && block_of_grid >= pieces[2].first   ? pieces[2]
           : count > 1 && block_of_grid >= pieces[1].first ? pieces[1]
                                                           : pieces[0];
  }
};

// A block of the grid for every kPanels panels of each piece; how many that are.
template <int kPanels>
unsigned blocks_across(BlockJob& job) {
  int blocks = 0;
  for (int i = 0; i < job.count; ++i) {
    job.pieces[i].first = blocks;
    blocks += (job.pieces[i].panels() + kPanels - 1) / kPanels;
  }
  return static_cast<unsigned>(blocks);
}

// Of one format. Few rows: false where blocks or columns do not go with it.
bool block_product_few(const Exec& exec, BlockJob& job, int64_t matrices, Block block);
void block_product_many(const Exec& exec, BlockJob& job, int64_t matrices, Block block);

// Which rows of x meet the matrix blockIdx.z, in q.
struct RowRange {
  int begin, end;
};
__device__ inline RowRange rows_of(const BlockJob& job, int64_t matrix) {
  if (job.groups == nullptr) return {0, static_cast<int>(job.rows)};
  const int64_t begin = job.groups[matrix] - job.first, end = job.groups[matrix + 1] - job.first;
  return {static_cast<int>(begin > 0 ? begin : 0), static_cast<int>(end < job.rows ? end : job.rows)};
}

__device__ inline void put_output(const BlockPiece& piece, const BlockJob& job, int64_t matrix, int m, int o,
                                  float sum) {
  const int n = static_cast<int>(job.first) + m;
  if (piece.bias) sum += piece.bias.get(static_cast<int>(matrix), o);
  piece.y.set(n, o, piece.residual ? piece.residual.get(n, o) + sum : sum);
}

}  // namespace qkv::kernels::cuda::blocks

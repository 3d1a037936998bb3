// Products with weights in blocks: rows of weights and rows of x in bytes, as the integer tensor core multiplies them,
// sixteen rows of weights by eight rows of x, a chunk of 32 columns at a time.
#pragma once

#include "kernels/cuda/products/block_formats.h"
#include "kernels/cuda/products/block_job.h"
#include "kernels/cuda/ptx.h"

namespace qkv::kernels::cuda::blocks {

// Chunks of 32 columns in a block: a power of two, or all there are.
template <class W>
struct BlockChunks {
  int count, shift;  // shift: 31 where one block has all

  __device__ explicit BlockChunks(const BlockJob& job)
      : count(W::kChunks > 0 ? W::kChunks : job.block / 32),
        shift(count == 1   ? 0
              : count == 2 ? 1
              : count == 4 ? 2
              : count == 8 ? 3
                           : 31) {}
  __device__ int block_of(int chunk) const { return chunk >> shift; }
  __device__ int in_block(int chunk) const { return chunk - (block_of(chunk) << shift); }
};

__device__ inline const uint8_t* ahead(const uint8_t* at, const uint8_t* last) {
  return at < last ? at : last;
}

// Rows g and g + 8 of sixteen rows of weights, g = lane / 4. A Place is where a thread reads from a chunk on, which is a multiple
// of kStep: there words() of chunk i gives its share of 32 columns of both rows. kChunks: in a block; 0: as the job says.
template <class Q>
struct GgufRows : Q {
  static constexpr bool kPanels = false;
  static constexpr int kChunks = Q::kElements / 32, kStep = kChunks;
  const uint8_t *row[2], *later, *last;
  int t;

  __device__ GgufRows(const BlockJob& job, const BlockPiece& piece, int64_t matrix, int panel, int lane) : t(lane % 4) {
    const uint8_t* const from = piece.w + matrix * piece.matrix_bytes;
    const auto at = [&](int o) { return from + min(panel * 16 + o, piece.outputs - 1) * job.row_bytes; };
    row[0] = at(lane / 4);
    row[1] = at(lane / 4 + 8);
    later = at(lane / 2) + lane % 2 * 96;
    last = from + piece.matrix_bytes - 1;
  }
  struct Place {
    const uint8_t* row[2];
    int t;

    __device__ const uint8_t* block(int i, int r) const { return row[r] + i / kChunks * Q::kBytes; }
    __device__ void words(int i, uint32_t (&a)[4]) const {
      Q::words(block(i, 0), i % kChunks, t, a[0], a[2]);
      Q::words(block(i, 1), i % kChunks, t, a[1], a[3]);
    }
    __device__ float scale(int i, int r) const { return Q::scale(block(i, r)); }
    __device__ float minimum(int i, int r) const { return Q::minimum(block(i, r)); }
    __device__ int sub(int i, int part, int r) const { return Q::sub(block(i, r), part); }
    __device__ int low(int i, int part, int r) const { return Q::low(block(i, r), part); }
  };
  static __device__ int offset(int chunk) {
    return static_cast<int>(static_cast<unsigned>(chunk) / kChunks * Q::kBytes);
  }
  __device__ Place place(int chunk) const { return {{row[0] + offset(chunk), row[1] + offset(chunk)}, t}; }
  // Brings some chunks as far as the second cache.
  __device__ void call_for(int chunk) const { prefetch(ahead(later + offset(chunk), last)); }
  // Of 32 columns of x, those of words().
  static __device__ uint2 of_x(const int8_t* x, int t) {
    return {*reinterpret_cast<const uint32_t*>(x + 4 * t), *reinterpret_cast<const uint32_t*>(x + 16 + 4 * t)};
  }
};

// kGroup: columns that share a scale, where that is known; 0: as the job says.
template <bool kNibbles, int kGroup>
struct PanelRows : OneScale {
  static constexpr bool kPanels = true;
  static constexpr int kChunks = kGroup / 32, kStep = kGroup > 0 ? 2 * kChunks : 1, kLines = kNibbles ? 1 : 2,
                       kChunkBytes = kLines * 4 * static_cast<int>(kPanelLine);
  const uint8_t *panel, *later, *last;
  int t, group_bytes, shift;

  __device__ PanelRows(const BlockJob& job, const BlockPiece& piece, int64_t matrix, int at, int lane)
      : panel(piece.w + matrix * piece.matrix_bytes + at * job.row_bytes + lane / 4 * 4),
        later(panel + 64 * lane - lane / 4 * 4),
        last(piece.w + (matrix + 1) * piece.matrix_bytes - 1),
        t(lane % 4),
        group_bytes(kChunkBytes / 32 * (kGroup > 0 ? kGroup : job.block)),
        shift(kGroup > 0 ? 0 : BlockChunks<PanelRows>(job).shift) {}

  struct Place {
    const PanelRows& rows;
    const uint8_t *at, *lines;
    int chunk;

    __device__ void words(int i, uint32_t (&a)[4]) const {
      const uint8_t* const from =
          kGroup > 0 ? lines + i / 2 * (kPanelLine + 2 * kChunkBytes) + i % 2 * kChunkBytes : rows.line(chunk + i);
      const auto word = [&](int offset) { return __ldg(reinterpret_cast<const uint32_t*>(from + offset)); };
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const uint32_t one = word(32 * r);
        a[r] = kNibbles ? less(one & 0x0f0f0f0fU, 8) : one ^ 0x80808080U;
        a[2 + r] = kNibbles ? less(one >> 4 & 0x0f0f0f0fU, 8) : word(kPanelLine + 32 * r) ^ 0x80808080U;
      }
    }
    __device__ float scale(int i, int r) const {
      const int b = kGroup > 0 ? i % 2 : (chunk + i) >> rows.shift & 1;
      const uint8_t* const from =
          kGroup > 0 ? at + i / 2 * (kPanelLine + 2 * kChunkBytes) : rows.scales((chunk + i) >> rows.shift);
      return __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(from + 32 * r + 2 * b));
    }
    __device__ float minimum(int, int) const {
      return 0;
    }
    __device__ int sub(int, int, int) const {
      return 1;
    }
    __device__ int low(int, int, int) const {
      return 1;
    }
  };
  __device__ const uint8_t* scales(int b) const {
    return panel + b / 2 * (kPanelLine + 2 * group_bytes);
  }
  __device__ const uint8_t* line(int chunk) const {
    const int b = chunk >> shift, c = chunk - (b << shift);
    return scales(b) + kPanelLine + b % 2 * group_bytes + c * kChunkBytes + kLines * t * kPanelLine;
  }
  static __device__ int offset(int chunk) {
    return chunk / 2 * (kPanelLine + 2 * kChunkBytes);
  }
  __device__ Place place(int chunk) const {
    const uint8_t* const at = panel + offset(chunk);
    return {*this, at, at + (1 + kLines * t) * kPanelLine, chunk};
  }
  __device__ void call_for(int chunk) const {
    prefetch(ahead(later + offset(chunk), last));
  }
  static __device__ uint2 of_x(const int8_t* x, int t) {
    return *reinterpret_cast<const uint2*>(x + 8 * t);
  }
};

// A lane's share of chunk i of a place.
template <class W>
struct Chunk {
  uint32_t a[4];
  uint32_t sub = 0, low = 0;  // where a format has them: a byte for each row and part
};
// The scales of its rows in the block.
struct BlockScales {
  float d[2], low[2];
};

template <class W>
inline constexpr int kPartsOfChunk = W::kHalfParts ? 2 : 1;

template <class W>
__device__ Chunk<W> chunk_of(const typename W::Place& place, int i) {
  Chunk<W> found;
  place.words(i, found.a);
  if constexpr (W::kSubscales) {
    constexpr int kParts = kPartsOfChunk<W>;
#pragma unroll
    for (int k = 0; k < 2 * kParts; ++k) {
      const int part = i * kParts + k / 2, shift = 8 * k;
      found.sub |= (static_cast<uint32_t>(place.sub(i, part, k % 2)) & 255U) << shift;
      if constexpr (W::kMinima) found.low |= static_cast<uint32_t>(place.low(i, part, k % 2)) << shift;
    }
  }
  return found;
}

template <class W>
__device__ BlockScales scales_of(const typename W::Place& place, int i) {
  BlockScales found{{place.scale(i, 0), place.scale(i, 1)}, {0, 0}};
  if constexpr (W::kMinima) {
    found.low[0] = place.minimum(i, 0);
    found.low[1] = place.minimum(i, 1);
  }
  return found;
}

// I and M of a block for sixteen rows of weights and eight rows of x: number i is of row g + 8 (i / 2) and of x row
// 2 t + i % 2. Sums of 32 products are below 2^22: with the bits of 1.5 x 2^23 beside them they are floats already.
template <class W>
struct BlockSums {
  static constexpr bool kShort = W::kChunks == 1;
  static constexpr int kZero = kShort ? 0x4b400000 : 0;
  int total[4] = {kZero, kZero, kZero, kZero}, lowest[4] = {kZero, kZero, kZero, kZero};

  static __device__ float number(int sum) {
    return kShort ? __uint_as_float(static_cast<uint32_t>(sum)) - 12582912.0F : static_cast<float>(sum);
  }
};

// Joins a chunk: of x row g the bytes, of x row 2 t + i the sum of its bytes, sum_of(part, i).
template <class W, class Sum>
__device__ void add_chunk(BlockSums<W>& s, const Chunk<W>& c, uint2 x, const Sum& sum_of) {
  constexpr int kParts = kPartsOfChunk<W>;
  if constexpr (!W::kSubscales) {
    mma_bytes(s.total, c.a, x.x, x.y);
  } else {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      int sum[4] = {};
      if constexpr (W::kHalfParts) {
        mma_bytes(sum, c.a[2 * p], c.a[2 * p + 1], p == 0 ? x.x : x.y);
      } else {
        mma_bytes(sum, c.a, x.x, x.y);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) s.total[i] += sum[i] * static_cast<int8_t>(c.sub >> (16 * p + 8 * (i / 2)));
    }
  }
  if constexpr (W::kMinima) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const int of_x[2] = {sum_of(p, 0), sum_of(p, 1)};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int low = W::kSubscales ? static_cast<int>(c.low >> (16 * p + 8 * (i / 2)) & 255U) : 1;
        s.lowest[i] += low * of_x[i % 2];
      }
    }
  }
}

// f<W>() with the rows of a format.
template <class F>
void with_rows(const BlockJob& job, Block block, const F& f) {
  switch (block) {
    case Block::q8:
      return job.block == 32 ? f.template operator()<PanelRows<false, 32>>()
                             : f.template operator()<PanelRows<false, 0>>();
    case Block::q4:
      return job.block == 32 ? f.template operator()<PanelRows<true, 32>>()
                             : f.template operator()<PanelRows<true, 0>>();
    case Block::q8_0:
      return f.template operator()<GgufRows<Q8_0>>();
    case Block::q4_0:
      return f.template operator()<GgufRows<Q4_0>>();
    case Block::q4_1:
      return f.template operator()<GgufRows<Q4_1>>();
    case Block::q5_0:
      return f.template operator()<GgufRows<Q5_0>>();
    case Block::q5_1:
      return f.template operator()<GgufRows<Q5_1>>();
    case Block::q2_k:
      return f.template operator()<GgufRows<Q2K>>();
    case Block::q3_k:
      return f.template operator()<GgufRows<Q3K>>();
    case Block::q4_k:
      return f.template operator()<GgufRows<Q4K>>();
    case Block::q5_k:
      return f.template operator()<GgufRows<Q5K>>();
    case Block::q6_k:
      return f.template operator()<GgufRows<Q6K>>();
    case Block::mxfp4:
      return f.template operator()<GgufRows<Mxfp4>>();
    case Block::none:
      return;
  }
}

}  // namespace qkv::kernels::cuda::blocks

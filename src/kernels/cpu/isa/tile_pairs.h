// Attention's products of bf16 on tiles (see tiles.h). The right operand is packed as pairs of the inner index; missing
// rows, keys and columns are zeros in both operands.
//
//   tile_matmul_columns   y[i][0 .. 15] = rows[i] . columns   rows in place, sixteen at a time; columns [inner / 2][16]
//   tile_matmul_pairs     y[m][c] += weights . rows           weights [lane][pairs] or transposed; rows [pairs][column]
//
// Order of additions: 32 of the inner index at a time, from the first.
#pragma once

#include "kernels/cpu/isa/matmul_pairs.h"
#include "kernels/cpu/isa/tile_pack.h"
#include "kernels/cpu/isa/tiles.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kTilePairs = 16;

void with_tiles(void (*work)(void*), void* what) {
  const UseTiles tiles;
  work(what);
}

// --- matmul_columns --------------------------------------------------------------------------------------------------

// Sixteen rows of 32, padded with zeros.
void pack_rows_of_tile(uint16_t* to, const BlockFrom& from) {
  for (int64_t r = 0; r < kTileRows; ++r) pack_left_row(to, from, r);
}

// Sixteen rows per tile; with four tiles all rows exist, with one some may be missing.
template <int Tiles>
void tile_matmul_columns_of(const MatmulColumnsCall& d, int64_t first) {
  alignas(64) uint16_t few[kTileRows * kTileInner];
  alignas(64) uint32_t end[kTilePairs * kColumns];
  const auto* rows = static_cast<const uint16_t*>(d.rows) + first * d.row_stride;
  const auto* columns = static_cast<const uint32_t*>(d.columns);
  const int64_t count = d.count - first, stride = d.row_stride * 2;
  zero_tile<0>();
  if constexpr (Tiles == 4) zero_tile<1>(), zero_tile<2>(), zero_tile<3>();
  for (int64_t k = 0; k < d.inner; k += kTileInner) {
    const int64_t inner = d.inner - k < kTileInner ? d.inner - k : kTileInner;
    const uint32_t* right = columns + k / 2 * kColumns;
    if (inner < kTileInner) {
      for (int64_t p = 0; p < kTilePairs; ++p) {
        const __m512i pairs = p < inner / 2 ? _mm512_loadu_si512(right + p * kColumns) : _mm512_setzero_si512();
        _mm512_store_si512(end + p * kColumns, pairs);
      }
      right = end;
    }
    load_tile<7>(right, kTileRowBytes);
    const auto load_left = [&]<int Tile>() __attribute__((always_inline)) {
      const uint16_t* left = rows + Tile * kTileRows * d.row_stride + k;
      if (inner == kTileInner && count >= Tiles * kTileRows) {
        load_tile<4 + Tile % 3>(left, stride);
      } else {
        pack_rows_of_tile(few, {left, d.row_stride, count - Tile * kTileRows, inner});
        load_tile<4 + Tile % 3>(few, kTileRowBytes);
      }
    };
    load_left.template operator()<0>();
    if constexpr (Tiles == 1) {
      multiply_tiles<0, 4, 7>();
    } else {  // load as many tiles as there are registers for before multiplying
      load_left.template operator()<1>();
      load_left.template operator()<2>();
      multiply_tiles<0, 4, 7>();
      multiply_tiles<1, 5, 7>();
      multiply_tiles<2, 6, 7>();
      load_left.template operator()<3>();
      multiply_tiles<3, 4, 7>();
    }
  }
  float* y = d.y + first * d.y_stride;
  if (count >= kTileRows) {
    store_tile<0>(y, d.y_stride * 4);
  } else {
    alignas(64) float sums[kTileRows * kColumns];
    store_tile<0>(sums, kTileRowBytes);
    for (int64_t r = 0; r < count; ++r) store(y + r * d.y_stride, load(sums + r * kColumns));
  }
  if constexpr (Tiles == 4) {
    store_tile<1>(y + 1 * kTileRows * d.y_stride, d.y_stride * 4);
    store_tile<2>(y + 2 * kTileRows * d.y_stride, d.y_stride * 4);
    store_tile<3>(y + 3 * kTileRows * d.y_stride, d.y_stride * 4);
  }
}

void tile_matmul_columns(const MatmulColumnsCall& d) noexcept {
  int64_t i = 0;
  for (; i + 4 * kTileRows <= d.count; i += 4 * kTileRows) tile_matmul_columns_of<4>(d, i);
  for (; i < d.count; i += kTileRows) tile_matmul_columns_of<1>(d, i);
}

// --- matmul_pairs ----------------------------------------------------------------------------------------------------

// y[r][c] = x[c][r], sixteen by sixteen, of which `pairs` x `lanes` exist.
void transpose_pairs(uint32_t* y, const uint32_t* x, int64_t stride, int64_t pairs, int64_t lanes) {
  __m512i words[kTilePairs];
  for (int i = 0; i < kTilePairs; ++i) {
    words[i] = i < pairs ? _mm512_maskz_loadu_epi32(some_lanes(lanes), x + i * stride) : _mm512_setzero_si512();
  }
  transpose(words);
  for (int i = 0; i < kTilePairs; ++i) _mm512_store_si512(y + i * kTilePairs, words[i]);
}

// The same where the pairs of a lane are contiguous: no transpose.
void pack_pairs(uint32_t* y, const uint32_t* x, int64_t stride, int64_t pairs, int64_t lanes) {
  for (int64_t r = 0; r < kTileRows; ++r) {
    const __m512i row =
        r < lanes ? _mm512_maskz_loadu_epi32(some_lanes(pairs), x + r * stride) : _mm512_setzero_si512();
    _mm512_store_si512(y + r * kTilePairs, row);
  }
}

// A tile of sums; through a buffer if fewer than sixteen by sixteen exist.
template <int Tile>
class TileOfSums {
 public:
  TileOfSums(const MatmulPairsCall& d, int64_t row, int64_t column)
      : y_(d.y + row * d.y_stride + column),
        stride_(d.y_stride),
        rows_(d.rows - row < kTileRows ? d.rows - row : kTileRows),
        some_(some_lanes(d.cols - column)),
        whole_(rows_ == kTileRows && d.cols - column >= kColumns) {
    if (whole_) {
      load_tile<Tile>(y_, stride_ * 4);
      return;
    }
    for (int64_t r = 0; r < kTileRows; ++r) {
      const __m512 sums = r < rows_ ? _mm512_maskz_loadu_ps(some_, y_ + r * stride_) : _mm512_setzero_ps();
      _mm512_store_ps(own_ + r * kColumns, sums);
    }
    load_tile<Tile>(own_, kTileRowBytes);
  }
  void put() {
    if (whole_) return store_tile<Tile>(y_, stride_ * 4);
    store_tile<Tile>(own_, kTileRowBytes);
    for (int64_t r = 0; r < rows_; ++r) {
      _mm512_mask_storeu_ps(y_ + r * stride_, some_, _mm512_load_ps(own_ + r * kColumns));
    }
  }

 private:
  alignas(64) float own_[kTileRows * kColumns];
  float* y_;
  int64_t stride_, rows_;
  __mmask16 some_;
  bool whole_;
};

// Rows of b after the last pair are read up to the next multiple of sixteen and multiplied by zeros: must be finite.
void tile_matmul_pairs(const MatmulPairsCall& d) noexcept {
  constexpr int64_t kMostSteps = 2;  // 64 of the inner index
  alignas(64) uint32_t left[kMostSteps * kTilePairs * kTileRows];
  const int64_t steps = (d.pairs + kTilePairs - 1) / kTilePairs, stride = d.b_stride * 4;
  for (int64_t row = 0; row < d.rows; row += kTileRows) {
    for (int64_t s = 0; s < steps; ++s) {
      uint32_t* to = left + s * kTilePairs * kTileRows;
      const uint32_t* from = d.a + s * kTilePairs * d.a_pair + row * d.a_lane;
      const int64_t pairs = d.pairs - s * kTilePairs, lanes = d.rows - row;
      d.a_lane == 1 ? transpose_pairs(to, from, d.a_pair, pairs, lanes) : pack_pairs(to, from, d.a_lane, pairs, lanes);
    }
    const auto step = [&]<int Sum>(int64_t s, int64_t column) __attribute__((always_inline)) {
      load_tile<6 + Sum>(d.b + s * kTilePairs * d.b_stride + column, stride);
      multiply_tiles<Sum, 4, 6 + Sum>();
    };
    int64_t column = 0;
    for (; column + kColumns < d.cols; column += 2 * kColumns) {
      TileOfSums<0> one(d, row, column);
      TileOfSums<1> two(d, row, column + kColumns);
      for (int64_t s = 0; s < steps; ++s) {
        load_tile<4>(left + s * kTilePairs * kTileRows, kTileRowBytes);
        step.template operator()<0>(s, column);
        step.template operator()<1>(s, column + kColumns);
      }
      one.put();
      two.put();
    }
    if (column >= d.cols) continue;
    TileOfSums<0> one(d, row, column);
    for (int64_t s = 0; s < steps; ++s) {
      load_tile<4>(left + s * kTilePairs * kTileRows, kTileRowBytes);
      step.template operator()<0>(s, column);
    }
    one.put();
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu

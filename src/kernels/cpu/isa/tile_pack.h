// Packing bf16 as tiles. A block is 32 of the inner index k by 32 of the other, two tiles:
//
//   left    [2][16][32]       row r of either tile: 32 elements along k
//   right   [2][16][16][2]    row p of either tile: the pair k = 2 p, 2 p + 1 of sixteen columns
//
// In memory k is contiguous or strided. Missing rows and columns are packed as zeros and not read.
#pragma once

#include "kernels/cpu/isa/epilogue.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kBlockSide = 32, kBlockNumbers = kBlockSide * kBlockSide;
constexpr int64_t kPanelColumns = kBlockSide;

constexpr int64_t steps_of(int64_t inner) {
  return (inner + kBlockSide - 1) / kBlockSide;
}
QKV_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Up to 32 rows of up to 32 elements.
struct BlockFrom {
  const uint16_t* data;
  int64_t stride;
  int64_t rows, columns;  // may be more than 32, or negative: none
};

QKV_INLINE __m512i load_row(const BlockFrom& from, int64_t row) {
  const int64_t columns = row < from.rows ? from.columns : 0;
  if (columns >= kBlockSide) return _mm512_loadu_si512(from.data + row * from.stride);
  if (columns <= 0) return __m512i{};
  const auto mask = static_cast<__mmask32>((uint64_t{1} << columns) - 1);
  return _mm512_maskz_loadu_epi16(mask, from.data + row * from.stride);
}

// Transposes sixteen rows of sixteen words.
QKV_INLINE void transpose(__m512i* m) {
  constexpr __mmask16 kAll = 0xffff;
  constexpr __mmask8 kAllWide = 0xff;
  for (int i = 0; i < 16; i += 4) {
    const __m512i a = _mm512_maskz_unpacklo_epi32(kAll, m[i], m[i + 1]),
                  b = _mm512_maskz_unpackhi_epi32(kAll, m[i], m[i + 1]),
                  c = _mm512_maskz_unpacklo_epi32(kAll, m[i + 2], m[i + 3]),
                  d = _mm512_maskz_unpackhi_epi32(kAll, m[i + 2], m[i + 3]);
    m[i] = _mm512_maskz_unpacklo_epi64(kAllWide, a, c);
    m[i + 1] = _mm512_maskz_unpackhi_epi64(kAllWide, a, c);
    m[i + 2] = _mm512_maskz_unpacklo_epi64(kAllWide, b, d);
    m[i + 3] = _mm512_maskz_unpackhi_epi64(kAllWide, b, d);
  }
  __m512i out[16];
  for (int c = 0; c < 4; ++c) {  // quarters of four rows each, columns c, c + 4, c + 8, c + 12
    const __m512i even_ab = _mm512_maskz_shuffle_i32x4(kAll, m[c], m[c + 4], 0x88),
                  odd_ab = _mm512_maskz_shuffle_i32x4(kAll, m[c], m[c + 4], 0xdd),
                  even_cd = _mm512_maskz_shuffle_i32x4(kAll, m[c + 8], m[c + 12], 0x88),
                  odd_cd = _mm512_maskz_shuffle_i32x4(kAll, m[c + 8], m[c + 12], 0xdd);
    out[c] = _mm512_maskz_shuffle_i32x4(kAll, even_ab, even_cd, 0x88);
    out[c + 4] = _mm512_maskz_shuffle_i32x4(kAll, odd_ab, odd_cd, 0x88);
    out[c + 8] = _mm512_maskz_shuffle_i32x4(kAll, even_ab, even_cd, 0xdd);
    out[c + 12] = _mm512_maskz_shuffle_i32x4(kAll, odd_ab, odd_cd, 0xdd);
  }
  for (int i = 0; i < 16; ++i) m[i] = out[i];
}

// Two rows of 32 elements as 32 pairs.
struct PairedRows {
  __m512i low, high;
};
QKV_INLINE PairedRows paired(__m512i even, __m512i odd) {
  alignas(64) static constexpr uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low = _mm512_load_si512(kLow), high = _mm512_or_si512(low, _mm512_set1_epi16(16));
  return {_mm512_permutex2var_epi16(even, low, odd), _mm512_permutex2var_epi16(even, high, odd)};
}

// One row of a left block, k contiguous.
QKV_INLINE void pack_left_row(uint16_t* to, const BlockFrom& from, int64_t row) {
  _mm512_store_si512(to + row * kBlockSide, load_row(from, row));
}

// A right block, k contiguous: a row of `from` becomes a column.
QKV_INLINE void pack_right_transposed(uint16_t* to, const BlockFrom& from) {
  for (int64_t tile = 0; tile < 2; ++tile) {
    __m512i words[16];
    for (int64_t r = 0; r < 16; ++r) words[r] = load_row(from, tile * 16 + r);
    transpose(words);
    for (int64_t p = 0; p < 16; ++p) _mm512_store_si512(to + (tile * 16 + p) * kBlockSide, words[p]);
  }
}

// A right block, k strided: rows of `from` are k.
QKV_INLINE void pack_right(uint16_t* to, const BlockFrom& from) {
  for (int64_t p = 0; p < 16; ++p) {
    const PairedRows pairs = paired(load_row(from, 2 * p), load_row(from, 2 * p + 1));
    _mm512_store_si512(to + p * kBlockSide, pairs.low);
    _mm512_store_si512(to + (16 + p) * kBlockSide, pairs.high);
  }
}

// A left block, k strided: rows of `from` are k, its columns become rows.
QKV_INLINE void pack_left_transposed(uint16_t* to, const BlockFrom& from) {
  __m512i low[16], high[16];
  for (int64_t p = 0; p < 16; ++p) {
    const PairedRows pairs = paired(load_row(from, 2 * p), load_row(from, 2 * p + 1));
    low[p] = pairs.low;
    high[p] = pairs.high;
  }
  transpose(low);
  for (int64_t r = 0; r < 16; ++r) _mm512_store_si512(to + r * kBlockSide, low[r]);
  transpose(high);
  for (int64_t r = 0; r < 16; ++r) _mm512_store_si512(to + (16 + r) * kBlockSide, high[r]);
}

// Packs panels of the right operand for one range of k: panel by panel, block by block.
struct PanelRange {
  int64_t panel, panels, first, inner;
};
void pack_panels(uint16_t* to, const TileCall& call, const PanelRange& at) {
  const TileSide& b = call.b;
  for (int64_t j = 0; j < at.panels; ++j) {
    const int64_t column = (at.panel + j) * kPanelColumns, columns = call.cols - column;
    for (int64_t k = 0; k < at.inner; k += kBlockSide, to += kBlockNumbers) {
      const int64_t left = at.inner - k;
      if (b.layout == TileSide::Layout::k_contiguous) {
        pack_right_transposed(to, {b.data + column * b.stride + at.first + k, b.stride, columns, left});
      } else {
        pack_right(to, {b.data + (at.first + k) * b.stride + column, b.stride, left, columns});
      }
    }
  }
}

// Packs a weight as right blocks, [O / 32][K / 32]: once, for all products with it.
void pack_weight(const PackWeight& call) noexcept {
  const int64_t steps = steps_of(call.inner);
  uint16_t* to = call.to;
  for (int64_t panel = call.first_panel; panel < call.end_panel; ++panel) {
    for (int64_t s = 0; s < steps; ++s, to += kBlockNumbers) {
      const int64_t row = panel * kPanelColumns, k = s * kBlockSide;
      const BlockFrom from{static_cast<const uint16_t*>(call.from.data) + row * call.stride + k, call.stride,
                           call.rows - row, call.inner - k};
      if (call.from.bf16) {
        pack_right_transposed(to, from);
        continue;
      }
      alignas(64) uint16_t narrow_rows[kBlockNumbers];
      const int64_t columns = smaller(from.columns, kBlockSide);
      for (int64_t r = 0; r < kBlockSide; ++r) {
        uint16_t* y = narrow_rows + r * kBlockSide;
        const auto* x = static_cast<const float*>(call.from.data) + (row + r) * call.stride + k;
        for (int64_t half = 0; half < kBlockSide; half += kLanes) {
          const int64_t count = r < from.rows ? smaller(columns - half, kLanes) : 0;
          store(y + half, count > 0 ? load_some(x + half, count) : splat(0));
        }
      }
      pack_right_transposed(to, {narrow_rows, kBlockSide, kBlockSide, kBlockSide});
    }
  }
}

// The epilogue for up to sixteen columns of one row.
QKV_INLINE void store_sums(const TileCall& call, int64_t row, int64_t column, const Lanes& sum, int64_t count) {
  epilogue_lanes(call.epilogue, call.row + row, call.column + column, sum, count);
}

}  // namespace
}  // namespace qkv::kernels::cpu

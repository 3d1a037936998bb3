// mix of bf16 where the CPU multiplies pairs (see block_dots.h): a chain over the inner index by twos, the second of
// the last two may be missing. Panels of both operands are laid out as pairs on the way; each serves many tiles.
#pragma once

#include "kernels/cpu/forms/block_dots.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kPanelPairs = PairMixCall::kPanel / 2, kPanelRegisters = 3, kPanelCols = kPanelRegisters * kLanes;
constexpr int kTileRows = 8;

// Columns of two rows as pairs; `two` may be null.
QKV_INLINE __m512i paired(const uint16_t* one, const uint16_t* two, __mmask16 which) {
  const __m512i first = _mm512_maskz_cvtepu16_epi32(which, _mm256_maskz_loadu_epi16(which, one));
  if (two == nullptr) return first;
  const __m512i second = _mm512_maskz_cvtepu16_epi32(which, _mm256_maskz_loadu_epi16(which, two));
  return _mm512_or_si512(first, _mm512_maskz_slli_epi32(which, second, 16));
}

QKV_INLINE __mmask16 lanes_below(int64_t count) {
  return count >= kLanes ? static_cast<__mmask16>(0xffff) : count > 0 ? first_bits(count) : __mmask16{0};
}

// Calls f(pair, its first row, its second row or null).
template <class F>
QKV_INLINE void over_pairs(const uint16_t* rows, int64_t stride, int64_t inner, F&& f) {
  for (int64_t l = 0; l < inner; l += 2) f(l / 2, rows + l * stride, l + 1 < inner ? rows + (l + 1) * stride : nullptr);
}

// b: a panel of columns, pair after pair.
void lay_columns(uint32_t* to, const PairMixCall& d, int64_t from, int64_t inner, int64_t column) {
  const int64_t count = d.cols - column;
  over_pairs(d.b + from * d.b_stride + column, d.b_stride, inner,
             [=](int64_t pair, const uint16_t* one, const uint16_t* two) {
               for (int64_t c = 0; c < kPanelRegisters; ++c) {
                 const int64_t skip = c * kLanes;
                 const __m512i pairs = paired(one + skip, two != nullptr ? two + skip : two, lanes_below(count - skip));
                 _mm512_store_si512(to + pair * kPanelCols + skip, pairs);
               }
             });
}

// a: eight rows are a tile; a tile holds row after row, or pair after pair where a is turned.
void lay_rows(uint32_t* to, const PairMixCall& d, int64_t from, int64_t inner) {
  if (d.turned) {
    over_pairs(
        d.a + from * d.a_stride, d.a_stride, inner, [=, &d](int64_t pair, const uint16_t* one, const uint16_t* two) {
          for (int64_t m = 0; m < d.rows; m += kLanes) {
            const __m512i pairs = paired(one + m, two != nullptr ? two + m : two, lanes_below(d.rows - m));
            uint32_t* tile = to + m * kPanelPairs + pair * kTileRows;
            _mm256_store_si256(reinterpret_cast<__m256i*>(tile), _mm512_maskz_extracti64x4_epi64(0xff, pairs, 0));
            if (m + kTileRows < d.rows) {
              _mm256_store_si256(reinterpret_cast<__m256i*>(tile + kTileRows * kPanelPairs),
                                 _mm512_maskz_extracti64x4_epi64(0xff, pairs, 1));
            }
          }
        });
    return;
  }
  for (int64_t m = 0; m < d.rows; ++m) {
    const uint16_t* row = d.a + m * d.a_stride + from;
    for (int64_t l = 0; l < inner; l += PairStep::kWide) {
      const __mmask32 which = first_halves(inner - l < PairStep::kWide ? inner - l : PairStep::kWide);
      _mm512_store_si512(to + m * kPanelPairs + l / 2, _mm512_maskz_loadu_epi16(which, row + l));
    }
  }
}

struct PairPanel {
  const uint32_t* a;
  const uint32_t* b;
  int64_t pairs, count;  // of the columns only so many exist
  bool add;
};

template <int Rows, bool Turned>
void pair_mix_tile(const PairPanel& at, float* y, int64_t y_stride) {
  const auto load_sums = [&](int r, int c) __attribute__((always_inline)) {
    return _mm512_maskz_loadu_ps(lanes_below(at.count - c * kLanes), y + r * y_stride + c * kLanes);
  };
  __m512 sums[unsigned{Rows}][unsigned{kPanelRegisters}];
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < kPanelRegisters; ++c) sums[r][c] = at.add ? load_sums(r, c) : _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < at.pairs; ++p) {
    __m512bh right[unsigned{kPanelRegisters}];
    for (int c = 0; c < kPanelRegisters; ++c)
      right[c] = (__m512bh)_mm512_load_si512(at.b + p * kPanelCols + c * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const auto two = static_cast<int>(Turned ? at.a[p * kTileRows + r] : at.a[r * kPanelPairs + p]);
      const auto left = (__m512bh)_mm512_set1_epi32(two);
      for (int c = 0; c < kPanelRegisters; ++c) sums[r][c] = _mm512_dpbf16_ps(sums[r][c], left, right[c]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < kPanelRegisters; ++c) {
      _mm512_mask_storeu_ps(y + r * y_stride + c * kLanes, lanes_below(at.count - c * kLanes), sums[r][c]);
    }
  }
}

template <bool Turned>
void pair_mix_rows(const PairMixCall& d, PairPanel at, int64_t column) {
  const uint32_t* a = at.a;
  float* y = d.y + column;
  int64_t m = 0;
  for (; m + kTileRows <= d.rows; m += kTileRows) {
    at.a = a + m * kPanelPairs;
    pair_mix_tile<kTileRows, Turned>(at, y + m * d.y_stride, d.y_stride);
  }
  for (int64_t r = 0; m < d.rows; ++m, ++r) {
    at.a = a + (m - r) * kPanelPairs + r * (Turned ? 1 : kPanelPairs);
    pair_mix_tile<1, Turned>(at, y + m * d.y_stride, d.y_stride);
  }
}

void mix_pairs(const PairMixCall& d) noexcept {
  alignas(64) uint32_t columns[kPanelPairs * kPanelCols];
  auto* rows = reinterpret_cast<uint32_t*>(d.room);
  int64_t from = 0;
  do {  // once even for nothing to add: y is put down
    const int64_t inner = d.inner - from < PairMixCall::kPanel ? d.inner - from : PairMixCall::kPanel;
    lay_rows(rows, d, from, inner);
    for (int64_t column = 0; column < d.cols; column += kPanelCols) {
      lay_columns(columns, d, from, inner, column);
      const PairPanel at{rows, columns, (inner + 1) / 2, d.cols - column, d.add || from > 0};
      d.turned ? pair_mix_rows<true>(d, at, column) : pair_mix_rows<false>(d, at, column);
    }
    from += inner;
  } while (from < d.inner);
}

}  // namespace
}  // namespace qkv::kernels::cpu

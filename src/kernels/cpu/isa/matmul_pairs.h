// Weighted sums of attention with pairs of bf16, for CPUs that multiply pairs. Packing:
//
//   weights   probabilities or score gradients, f32 [inner][lane]        ->   [inner / 2][lane][2]
//   rows      values, keys, queries or dz in place, one row per inner    ->   [inner / 2][column][2]
#pragma once

#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/isa/simd.h"

namespace qkv::kernels::cpu {
namespace {

QKV_INLINE __mmask16 some_lanes(int64_t count) {
  return count >= kLanes ? static_cast<__mmask16>(0xffff) : first_bits(count);
}

// Two values per lane, rounded to nearest even.
QKV_INLINE __m512i rounded_pairs(const Lanes& even, const Lanes& odd) {
#if defined(__AVX512BF16__)
  alignas(64) static constexpr uint16_t kTurns[2 * kLanes] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                              21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                              11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto both = (__m512i)_mm512_cvtne2ps_pbh((__m512)odd.part[0], (__m512)even.part[0]);
  return _mm512_maskz_permutexvar_epi16(~__mmask32{0}, _mm512_load_si512(kTurns), both);
#else
  const auto bits_of = [](const Lanes& v) __attribute__((always_inline)) {
    const WordRegister bits = (WordRegister)v.part[0];
    return v.part[0] != v.part[0] ? (bits | 0x400000U) : bits + 0x7fffU + ((bits >> 16) & 1U);
  };
  return (__m512i)((bits_of(even) >> 16) | (bits_of(odd) & 0xffff0000U));
#endif
}

void pair_weights(const PairWeights& d) noexcept {
  const Lanes none = splat(0);
  for (int64_t i = PairWeights::first(d.begin); i < d.end; i += 2) {
    for (int64_t l = 0; l < d.lanes; l += kLanes) {
      const float* x = d.x + i * d.lanes + l;
      const Lanes even = i >= d.begin ? load(x) : none;
      const Lanes odd = i + 1 >= d.begin && i + 1 < d.end ? load(x + d.lanes) : none;
      _mm512_storeu_si512(d.y + i / 2 * d.lanes + l, rounded_pairs(even, odd));
    }
  }
}

// 32 columns of two rows at a time, interleaved by fours first. Prefetches later rows: rows of one head are far apart
// in memory.
bool pair_rows(const PairRows& d) noexcept {
  constexpr int64_t kAtOnce = 2 * kLanes, kAhead = 16;
  constexpr __mmask32 kAll = ~__mmask32{0};
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const __m512i magnitude = _mm512_set1_epi16(0x7fff), infinite = _mm512_set1_epi16(0x7f80);
  const int64_t wide = PairRows::wide(d.cols);
  const auto row_at = [&](int64_t i) { return i < d.count ? d.rows[i] : nullptr; };
  __m512i largest = _mm512_setzero_si512();
  for (int64_t i = 0; i < d.count; i += 2) {
    const uint16_t *even = d.rows[i], *odd = row_at(i + 1), *even_next = row_at(i + kAhead),
                   *odd_next = row_at(i + 1 + kAhead);
    uint32_t* y = d.y + i / 2 * wide;
    for (int64_t c = 0; c < d.cols; c += kAtOnce) {
      const int64_t left = d.cols - c;
      const auto some = left >= kAtOnce ? kAll : static_cast<__mmask32>((1U << left) - 1U);
      const __m512i none = _mm512_setzero_si512();
      const __m512i a = even != nullptr ? _mm512_maskz_loadu_epi16(some, even + c) : none;
      const __m512i b = odd != nullptr ? _mm512_maskz_loadu_epi16(some, odd + c) : none;
      if (even_next != nullptr) __builtin_prefetch(even_next + c);
      if (odd_next != nullptr) __builtin_prefetch(odd_next + c);
      largest = _mm512_maskz_max_epu16(kAll, largest, _mm512_and_si512(a, magnitude));
      largest = _mm512_maskz_max_epu16(kAll, largest, _mm512_and_si512(b, magnitude));
      const __m512i low = _mm512_maskz_unpacklo_epi16(kAll, a, b), high = _mm512_maskz_unpackhi_epi16(kAll, a, b);
      _mm512_storeu_si512(y + c, _mm512_permutex2var_epi64(low, first, high));
      if (left > kLanes) _mm512_storeu_si512(y + c + kLanes, _mm512_permutex2var_epi64(low, second, high));
    }
  }
  return _mm512_cmp_epu16_mask(largest, infinite, _MM_CMPINT_NLT) == 0;
}

#if defined(__AVX512BF16__)
// A chain over the pairs: vdpbf16ps adds two products to the sum.
template <int Rows, int Cols>
void matmul_pairs_tile(const MatmulPairsCall& d, int64_t row, int64_t column) {
  const uint32_t *a = d.a + row * d.a_lane, *b = d.b + column;
  float* y = d.y + row * d.y_stride + column;
  const __mmask16 last = some_lanes(d.cols - column - (Cols - 1) * kLanes);
  __m512 sums[unsigned{Rows}][unsigned{Cols}];
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols - 1; ++c) sums[r][c] = _mm512_loadu_ps(y + r * d.y_stride + c * kLanes);
    sums[r][Cols - 1] = _mm512_maskz_loadu_ps(last, y + r * d.y_stride + (Cols - 1) * kLanes);
  }
  for (int64_t p = 0; p < d.pairs; ++p) {
    __m512bh right[unsigned{Cols}];
    for (int c = 0; c < Cols; ++c) right[c] = (__m512bh)_mm512_loadu_si512(b + p * d.b_stride + c * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const auto left = (__m512bh)_mm512_set1_epi32(static_cast<int>(a[p * d.a_pair + r * d.a_lane]));
      for (int c = 0; c < Cols; ++c) sums[r][c] = _mm512_dpbf16_ps(sums[r][c], left, right[c]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols - 1; ++c) _mm512_storeu_ps(y + r * d.y_stride + c * kLanes, sums[r][c]);
    _mm512_mask_storeu_ps(y + r * d.y_stride + (Cols - 1) * kLanes, last, sums[r][Cols - 1]);
  }
}

template <int Cols>
void matmul_pairs_columns(const MatmulPairsCall& d, int64_t column) {
  constexpr int kRows = Cols > 2 ? 4 : 8;  // at least eight independent accumulators
  int64_t row = 0;
  for (; row + kRows <= d.rows; row += kRows) matmul_pairs_tile<kRows, Cols>(d, row, column);
  for (; row < d.rows; ++row) matmul_pairs_tile<1, Cols>(d, row, column);
}

void matmul_pairs(const MatmulPairsCall& d) noexcept {
  int64_t column = 0;
  for (; d.cols - column > 3 * kLanes; column += 4 * kLanes) matmul_pairs_columns<4>(d, column);
  if (d.cols - column > 2 * kLanes) return matmul_pairs_columns<3>(d, column);
  if (d.cols - column > kLanes) return matmul_pairs_columns<2>(d, column);
  if (d.cols > column) matmul_pairs_columns<1>(d, column);
}
#endif

}  // namespace
}  // namespace qkv::kernels::cpu

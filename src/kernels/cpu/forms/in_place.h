// One row of activations against rows of GGUF blocks as they lie in memory, sixteen rows of weights side by side: as
// many streams of memory. Sums of a row's block come out in several lanes; those of sixteen rows are added together, so
// that a lane becomes a row and the floats go the way of int_forms.h.
//
//   blocks of 32   two at a time: bytes 0 to 15 of both, then 16 to 31; lanes 0 to 3 belong to the first block
//   blocks of 256  products of bytes to 16 bits (exact: u is at most 63), times the subscale to 32; I and M of a row
//                  take the places of the two blocks
#pragma once

#include "kernels/cpu/forms/unpack.h"

#if defined(__AVX512VNNI__)

namespace qkv::kernels::cpu {
namespace {

QKV_INLINE __m128i load_16(const void* at) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at));
}
QKV_INLINE __m256i load_32(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}
// Sixteen bytes from each of two addresses.
QKV_INLINE __m256i load_both(const void* a, const void* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(a)), load_16(b), 1);
}
QKV_INLINE __m256i low_halves(__m256i q) {
  return _mm256_and_si256(q, _mm256_set1_epi8(15));
}
QKV_INLINE __m256i high_halves(__m256i q) {
  return _mm256_and_si256(_mm256_srli_epi16(q, 4), _mm256_set1_epi8(15));
}

// Four lanes of four rows become one: [first x 4 | second x 4] for each row in, [rows of first | rows of second] out.
QKV_INLINE __m256i sums_of_four(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  const __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
  return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

struct TwoSums {
  Ints first, second;
};

// Those of sixteen rows: row(r) gives [first x 4 | second x 4].
template <class Row>
QKV_INLINE TwoSums sums_of_rows(Row&& row) {
  __m256i four[4];
  for (int i = 0; i < 4; ++i) four[i] = sums_of_four(row(4 * i), row(4 * i + 1), row(4 * i + 2), row(4 * i + 3));
  const auto both = [](__m256i a, __m256i b) __attribute__((always_inline)) {
    return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(a), b, 1);
  };
  const __m512i a = both(four[0], four[1]), b = both(four[2], four[3]);
  return {{{(IntRegister)_mm512_maskz_shuffle_i32x4(0xffff, a, b, 0x88)}},
          {{(IntRegister)_mm512_maskz_shuffle_i32x4(0xffff, a, b, 0xdd)}}};
}

// Half-precision numbers of sixteen rows: at(r) is where row r has its own.
template <class At>
QKV_INLINE Lanes halves_of_rows(At&& at) {
  const auto half = [&](int r) __attribute__((always_inline)) {
    int16_t bits;
    __builtin_memcpy(&bits, at(r), 2);
    return bits;
  };
  const auto eight = [&](int r) __attribute__((always_inline)) {
    __m128i v = _mm_cvtsi32_si128(half(r));
    v = _mm_insert_epi16(v, half(r + 1), 1);
    v = _mm_insert_epi16(v, half(r + 2), 2);
    v = _mm_insert_epi16(v, half(r + 3), 3);
    v = _mm_insert_epi16(v, half(r + 4), 4);
    v = _mm_insert_epi16(v, half(r + 5), 5);
    v = _mm_insert_epi16(v, half(r + 6), 6);
    return _mm_insert_epi16(v, half(r + 7), 7);
  };
  const __m256i all = _mm256_inserti128_si256(_mm256_castsi128_si256(eight(0)), eight(8), 1);
  return {{(Register)_mm512_maskz_cvtph_ps(0xffff, all)}};
}

// --- blocks of 32
// ------------------------------------------------------------------------------------------------------

// Bytes 0 to 15 of two blocks, and 16 to 31.
struct HalfBlocks {
  __m256i low, high;
};

QKV_INLINE HalfBlocks half_blocks(Q8_0, const uint8_t* a, const uint8_t* b) {
  const __m256i sign = _mm256_set1_epi8(-128);
  return {_mm256_xor_si256(load_both(a + 2, b + 2), sign), _mm256_xor_si256(load_both(a + 18, b + 18), sign)};
}
QKV_INLINE HalfBlocks half_blocks(Q4_0, const uint8_t* a, const uint8_t* b) {
  const __m256i q = load_both(a + 2, b + 2);
  return {low_halves(q), high_halves(q)};
}
QKV_INLINE HalfBlocks half_blocks(Q4_1, const uint8_t* a, const uint8_t* b) {
  const __m256i q = load_both(a + 4, b + 4);
  return {low_halves(q), high_halves(q)};
}
// Adds the fifth bits, of which each block has 32 in one word.
QKV_INLINE HalfBlocks with_fifth_bits(const HalfBlocks& q, const uint8_t* a, const uint8_t* b) {
  uint32_t of_a, of_b;
  __builtin_memcpy(&of_a, a, 4);
  __builtin_memcpy(&of_b, b, 4);
  const __m256i bit = _mm256_set1_epi8(16);
  return {_mm256_mask_add_epi8(q.low, (of_a & 0xffffU) | of_b << 16, q.low, bit),
          _mm256_mask_add_epi8(q.high, of_a >> 16 | (of_b & 0xffff0000U), q.high, bit)};
}
QKV_INLINE HalfBlocks half_blocks(Q5_0, const uint8_t* a, const uint8_t* b) {
  const __m256i q = load_both(a + 6, b + 6);
  return with_fifth_bits({low_halves(q), high_halves(q)}, a + 2, b + 2);
}
QKV_INLINE HalfBlocks half_blocks(Q5_1, const uint8_t* a, const uint8_t* b) {
  const __m256i q = load_both(a + 8, b + 8);
  return with_fifth_bits({low_halves(q), high_halves(q)}, a + 4, b + 4);
}
QKV_INLINE HalfBlocks half_blocks(Mxfp4, const uint8_t* a, const uint8_t* b) {
  const __m256i q = load_both(a + 1, b + 1), values = load_both(Mxfp4::kTwice, Mxfp4::kTwice);
  return {_mm256_shuffle_epi8(values, low_halves(q)), _mm256_shuffle_epi8(values, high_halves(q))};
}

QKV_INLINE Ints load_bytes(__m128i bytes) {
  return {{(IntRegister)_mm512_maskz_cvtepu8_epi32(0xffff, bytes)}};
}
template <class Q, class At>
QKV_INLINE Lanes scales_of_rows(At&& at) {
  if constexpr (Q::kBytes == Mxfp4::kBytes) {
    const auto e = [&](int r) __attribute__((always_inline)) {
      return static_cast<char>(at(r)[0]);
    };
    const Ints all = load_bytes(_mm_set_epi8(e(15), e(14), e(13), e(12), e(11), e(10), e(9), e(8), e(7), e(6), e(5),
                                             e(4), e(3), e(2), e(1), e(0)));
    const auto bits = (WordRegister)all.part[0];
    return {{(Register)Mxfp4::scale_bits(bits)}};
  } else {
    return halves_of_rows(at);
  }
}

// Where sixteen rows stand: few addresses, because there are few registers for them.
struct RowsInPlace {
  const uint8_t* fourth[4];  // rows 0, 4, 8, 12
  int64_t stride;
  // The next sixteen rows, a little with every step: rows are too short for the CPU to see sixteen streams coming.
  const uint8_t* ahead;
  RowsInPlace(const InPlaceCall& c, int64_t o) : stride(c.row_bytes), ahead(c.w + (o + kLanes) * c.row_bytes) {
    for (int i = 0; i < 4; ++i) fourth[i] = c.w + (o + 4 * i) * stride;
  }
  inline __attribute__((always_inline)) const uint8_t* operator()(int r) const {
    return fourth[r / 4] + r % 4 * stride;
  }
  inline __attribute__((always_inline)) void advance(int64_t bytes) {
    for (const uint8_t*& at : fourth) at += bytes;
    for (const uint8_t* end = ahead + kLanes * bytes; ahead < end; ahead += 64) __builtin_prefetch(ahead, 0, 2);
  }
};

template <class Q, bool Minima>
void blocks_of_32(const InPlaceCall& c) noexcept {
  const int64_t blocks = c.shape.blocks();
  for (int64_t o = 0; o < c.outputs; o += kPanel) {
    RowsInPlace rows(c, o);
    Lanes y = splat(0);
    const auto add_block = [&](const Ints& total, int64_t block, int64_t offset) __attribute__((always_inline)) {
      const auto at = [&](int r) __attribute__((always_inline)) {
        return rows(r) + offset;
      };
      const Lanes scale_x = splat(c.x.scales[block]);
      const Ints sums = splat_int(c.x.sums[block]);
      y = y + to_floats(Minima ? total : total + sums) * (scales_of_rows<Q>(at) * scale_x);
      if constexpr (Minima) {
        const auto minimum = [&](int r) __attribute__((always_inline)) {
          return at(r) + 2;
        };
        y = y + to_floats(sums) * (halves_of_rows(minimum) * scale_x);
      }
    };
    // Two blocks, or an odd one that is its own neighbour.
    const auto step = [&](int64_t block, int64_t next) __attribute__((always_inline)) {
      const int8_t *x = c.x.q + block * 32, *x_next = x + next * 32;
      const __m256i x_low = load_both(x, x_next), x_high = load_both(x + 16, x_next + 16);
      const TwoSums sums = sums_of_rows([&](int r) __attribute__((always_inline)) {
        const HalfBlocks u = half_blocks(Q{}, rows(r), rows(r) + next * Q::kBytes);
        return _mm256_dpbusd_epi32(_mm256_dpbusd_epi32(_mm256_setzero_si256(), u.low, x_low), u.high, x_high);
      });
      add_block(sums.first, block, 0);
      if (next > 0) add_block(sums.second, block + 1, Q::kBytes);
      rows.advance(2 * Q::kBytes);
    };
    for (int64_t block = 0; block + 2 <= blocks; block += 2) step(block, 1);
    if (blocks % 2 != 0) step(blocks - 1, 0);
    store(c.y + o, y);
  }
}

// --- blocks of 256
// -----------------------------------------------------------------------------------------------------

// sums += sub * (products of 32 bytes)
QKV_INLINE __m256i add_products(__m256i sums, __m256i u, const int8_t* x, __m256i sub) {
  return _mm256_dpwssd_epi32(sums, _mm256_maddubs_epi16(u, load_32(x)), sub);
}
QKV_INLINE __m128i four_lanes(__m256i v) {
  return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
QKV_INLINE __m256i lanes_of_row(__m256i total, __m128i lowest) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(four_lanes(total)), lowest, 1);
}

// Subscales 2 i and 2 i + 1 of sixteen, each eight times.
QKV_INLINE __m256i two_of_sixteen(__m256i subs, int i) {
  const auto a = static_cast<int16_t>(2 * i), b = static_cast<int16_t>(2 * i + 1);
  return _mm256_permutexvar_epi16(_mm256_set_epi16(b, b, b, b, b, b, b, b, a, a, a, a, a, a, a, a), subs);
}

// I in lanes 0 to 3, M in lanes 4 to 7. For every 32 bytes: bytes(i) gives them.
template <class Bytes>
QKV_INLINE __m256i parts_of_16(__m256i subs, __m256i lows, const int8_t* x, const int16_t* sums, Bytes&& bytes) {
  __m256i total = _mm256_setzero_si256();
  for (int i = 0; i < 8; ++i) total = add_products(total, bytes(i), x + 32 * i, two_of_sixteen(subs, i));
  return lanes_of_row(total, four_lanes(_mm256_madd_epi16(lows, load_32(sums))));
}

// Eight subscales and lows of six bits, as words.
struct SixBits {
  __m128i subs, lows;
};
QKV_INLINE SixBits six_bits(const uint8_t* at) {
  uint32_t a, b, c;
  __builtin_memcpy(&a, at, 4);
  __builtin_memcpy(&b, at + 4, 4);
  __builtin_memcpy(&c, at + 8, 4);
  const auto joined_words = [](uint32_t first, uint32_t second) __attribute__((always_inline)) {
    return _mm_cvtepu8_epi16(_mm_cvtsi64_si128(static_cast<int64_t>(static_cast<uint64_t>(second) << 32 | first)));
  };
  return {joined_words(a & 0x3f3f3f3fU, (c & 0x0f0f0f0fU) | (a >> 2 & 0x30303030U)),
          joined_words(b & 0x3f3f3f3fU, (c >> 4 & 0x0f0f0f0fU) | (b >> 2 & 0x30303030U))};
}
template <class Bytes>
QKV_INLINE __m256i parts_of_32(const SixBits& six, const int8_t* x, const int16_t* sums, Bytes&& bytes) {
  __m256i total = _mm256_setzero_si256();
  const __m256i subs = _mm256_castsi128_si256(six.subs);
  for (int i = 0; i < 8; ++i) {
    const __m256i sub = _mm256_permutexvar_epi16(_mm256_set1_epi16(static_cast<int16_t>(i)), subs);
    total = add_products(total, bytes(i), x + 32 * i, sub);
  }
  return lanes_of_row(total, _mm_madd_epi16(six.lows, load_16(sums)));
}

QKV_INLINE __m256i block_of_row(Q4K, const uint8_t* b, const int8_t* x, const int16_t* sums) {
  return parts_of_32(
      six_bits(b + 4), x, sums, [&](int i) __attribute__((always_inline)) {
        const __m256i q = load_32(b + 16 + i / 2 * 32);
        return i % 2 == 0 ? low_halves(q) : high_halves(q);
      });
}
QKV_INLINE __m256i block_of_row(Q5K, const uint8_t* b, const int8_t* x, const int16_t* sums) {
  const __m256i fifth = load_32(b + 16);
  return parts_of_32(
      six_bits(b + 4), x, sums, [&](int i) __attribute__((always_inline)) {
        const __m256i q = load_32(b + 48 + i / 2 * 32), four = i % 2 == 0 ? low_halves(q) : high_halves(q);
        const __mmask32 set = _mm256_test_epi8_mask(fifth, _mm256_set1_epi8(static_cast<int8_t>(1 << i)));
        return _mm256_mask_add_epi8(four, set, four, _mm256_set1_epi8(16));
      });
}

// Bits 2 j and 2 j + 1 of every byte.
QKV_INLINE __m256i two_bits(__m256i q, int j) {
  return _mm256_and_si256(_mm256_srli_epi16(q, 2 * j), _mm256_set1_epi8(3));
}

QKV_INLINE __m256i block_of_row(Q2K, const uint8_t* b, const int8_t* x, const int16_t* sums) {
  const __m128i both = load_16(b), mask = _mm_set1_epi8(15);
  const __m256i subs = _mm256_cvtepu8_epi16(_mm_and_si128(both, mask));
  const __m256i lows = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(both, 4), mask));
  return parts_of_16(
      subs, lows, x,
      sums, [&](int i) __attribute__((always_inline)) { return two_bits(load_32(b + 16 + i / 4 * 32), i % 4); });
}
QKV_INLINE __m256i block_of_row(Q3K, const uint8_t* b, const int8_t* x, const int16_t* sums) {
  uint32_t s[3];
  __builtin_memcpy(s, b + 96, 12);
  const auto four = [&](int i) __attribute__((always_inline)) {
    return static_cast<int>((s[i % 2] >> (i / 2 * 4) & 0x0f0f0f0fU) | (s[2] >> (2 * i) & 0x03030303U) << 4);
  };
  const __m256i words = _mm256_cvtepu8_epi16(_mm_set_epi32(four(3), four(2), four(1), four(0)));
  const __m256i subs = _mm256_sub_epi16(words, _mm256_set1_epi16(32));
  const __m256i third = load_32(b);
  return parts_of_16(
      subs, subs, x, sums, [&](int i) __attribute__((always_inline)) {
        const __m256i two = two_bits(load_32(b + 32 + i / 4 * 32), i % 4);
        const __mmask32 set = _mm256_test_epi8_mask(third, _mm256_set1_epi8(static_cast<int8_t>(1 << i)));
        return _mm256_mask_add_epi8(two, set, two, _mm256_set1_epi8(4));
      });
}
QKV_INLINE __m256i block_of_row(Q6K, const uint8_t* b, const int8_t* x, const int16_t* sums) {
  const __m256i subs = _mm256_cvtepi8_epi16(load_16(b + 192));
  return parts_of_16(
      subs, subs, x, sums, [&](int i) __attribute__((always_inline)) {
        const __m256i q = load_32(b + i / 4 * 64 + i % 2 * 32);
        const __m256i above = two_bits(load_32(b + 128 + i / 4 * 32), i % 4);
        return _mm256_or_si256(i % 4 < 2 ? low_halves(q) : high_halves(q), _mm256_slli_epi16(above, 4));
      });
}

// Where a block has its scale, and the scale of its minima.
template <class Q>
struct ScalesAt {
  static constexpr int kScale = 0, kMinimum = 2;
};
template <>
struct ScalesAt<Q2K> {
  static constexpr int kScale = 80, kMinimum = 82;
};
template <>
struct ScalesAt<Q3K> {
  static constexpr int kScale = 108;
};
template <>
struct ScalesAt<Q6K> {
  static constexpr int kScale = 208;
};

template <class Q, bool Minima>
void blocks_of_256(const InPlaceCall& c) noexcept {
  for (int64_t o = 0; o < c.outputs; o += kPanel) {
    RowsInPlace rows(c, o);
    Lanes y = splat(0);
    for (int64_t block = 0; block < c.shape.blocks(); ++block, rows.advance(Q::kBytes)) {
      const int8_t* x = c.x.q + block * 256;
      const int16_t* part_sums = c.x.part_sums + block * (256 / Q::kPart);
      const auto scale = [&](int r) __attribute__((always_inline)) {
        return rows(r) + ScalesAt<Q>::kScale;
      };
      const TwoSums sums =
          sums_of_rows([&](int r) __attribute__((always_inline)) { return block_of_row(Q{}, rows(r), x, part_sums); });
      const Lanes scale_x = splat(c.x.scales[block]);
      const Ints total = Minima ? sums.first : sums.first + sums.second * splat_int(-c.shape.offset);
      y = y + to_floats(total) * (halves_of_rows(scale) * scale_x);
      if constexpr (Minima) {
        const auto minimum = [&](int r) __attribute__((always_inline)) {
          return rows(r) + ScalesAt<Q>::kMinimum;
        };
        y = y + to_floats(sums.second) * (-halves_of_rows(minimum) * scale_x);
      }
    }
    store(c.y + o, y);
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu

#endif

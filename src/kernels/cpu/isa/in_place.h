// One row of activations times rows of GGUF blocks in place, sixteen rows of weights at a time. The sums of a block are
// spread over several lanes; those of sixteen rows are reduced together, so that a lane becomes a row, and then follow
// the float order of int_isa_kernels.h.
//
// A register holds two rows, A and B, and two values per row, in groups of four lanes:
//   [first A | first B | second A | second B]
//   blocks of 32    first and second are neighbouring blocks
//   blocks of 256   first and second are I and M; products of bytes are summed in 16 bits (exact: u is at most 63),
//                   then multiplied by the subscale and summed in 32 bits
#pragma once

#include "kernels/cpu/isa/unpack.h"

#if defined(__AVX512VNNI__)

namespace qkv::kernels::cpu {
namespace {

QKV_INLINE __m128i load_16(const void* at) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at));
}
QKV_INLINE __m256i load_32(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}
QKV_INLINE __m512i joined(__m256i a, __m256i b) {
  return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(a), b, 1);
}
QKV_INLINE __m512i twice(__m256i a) {
  return _mm512_maskz_broadcast_i64x4(0xff, a);
}
// Sixteen bytes from each address.
QKV_INLINE __m256i load_two(const void* a, const void* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(a)), load_16(b), 1);
}
QKV_INLINE __m512i load_four(const void* a, const void* b, const void* c, const void* d) {
  const __m512i three = _mm512_maskz_inserti64x2(0xff, _mm512_castsi256_si512(load_two(a, b)), load_16(c), 2);
  return _mm512_maskz_inserti64x2(0xff, three, load_16(d), 3);
}
QKV_INLINE __m512i low_halves(__m512i q) {
  return _mm512_maskz_and_epi32(0xffff, q, _mm512_set1_epi8(15));
}
QKV_INLINE __m512i high_halves(__m512i q) {
  return _mm512_maskz_and_epi32(0xffff, _mm512_srli_epi16(q, 4), _mm512_set1_epi8(15));
}
template <int Bits>
QKV_INLINE __m512i words_down(__m512i q) {
  if constexpr (Bits > 0) {
    return _mm512_srli_epi16(q, Bits);
  } else {
    return _mm512_slli_epi16(q, -Bits);
  }
}

// Addresses of sixteen rows: only four pointers, to save registers.
struct RowsInPlace {
  const uint8_t* fourth[4];  // rows 0, 4, 8, 12
  int64_t stride;

  RowsInPlace(const InPlaceCall& c, int64_t o) : stride(c.row_bytes) {
    for (int i = 0; i < 4; ++i) fourth[i] = c.w + (o + 4 * i) * stride;
  }
  inline __attribute__((always_inline)) const uint8_t* operator()(int r) const {
    return fourth[r / 4] + r % 4 * stride;
  }
  inline __attribute__((always_inline)) void advance(int64_t bytes) {
    for (const uint8_t*& at : fourth) at += bytes;
  }
  // Prefetches the same bytes of rows r and r + 4 of the next sixteen rows. Rows are too short for the hardware to
  // detect sixteen streams, and a single stream reaches half of the memory bandwidth.
  template <int Bytes>
  inline __attribute__((always_inline)) void fetch(int r) const {
#pragma GCC unroll 8
    for (int l = 0; l < Bytes; l += 64) {
      __builtin_prefetch((*this)(r) + kLanes * stride + l, 0, 2);
      __builtin_prefetch((*this)(r + 4) + kLanes * stride + l, 0, 2);
    }
  }
};

struct TwoSums {
  Ints first, second;
};

// Sums of sixteen rows; two(a, b) gives those of rows a and b as above.
template <class Two>
QKV_INLINE TwoSums sums_of_rows(Two&& two) {
  __m512i eight[2];
#pragma GCC unroll 2
  for (int g = 0; g < 2; ++g) {
    const auto added = [](__m512i a, __m512i b) __attribute__((always_inline)) {
      return _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(0xffff, a, b), _mm512_maskz_unpackhi_epi32(0xffff, a, b));
    };
    const int r = 8 * g;
    const __m512i low = added(two(r, r + 4), two(r + 1, r + 5)), high = added(two(r + 2, r + 6), two(r + 3, r + 7));
    eight[g] =
        _mm512_add_epi32(_mm512_maskz_unpacklo_epi64(0xff, low, high), _mm512_maskz_unpackhi_epi64(0xff, low, high));
  }
  return {{{(IntRegister)_mm512_maskz_shuffle_i32x4(0xffff, eight[0], eight[1], 0x44)}},
          {{(IntRegister)_mm512_maskz_shuffle_i32x4(0xffff, eight[0], eight[1], 0xee)}}};
}

// A word of each of sixteen rows: the first of the sixteen bytes at at(r), or the last.
enum class Word { first, last };
template <Word W, class At>
QKV_INLINE Ints words_of_rows(At&& at) {
  __m256i eight[2];
#pragma GCC unroll 2
  for (int g = 0; g < 2; ++g) {
    const auto two = [&](int r) __attribute__((always_inline)) {
      return load_two(at(r), at(r + 4));
    };
    const int r = 8 * g;
    if constexpr (W == Word::first) {
      eight[g] = _mm256_unpacklo_epi64(_mm256_unpacklo_epi32(two(r), two(r + 1)),
                                       _mm256_unpacklo_epi32(two(r + 2), two(r + 3)));
    } else {
      eight[g] = _mm256_unpackhi_epi64(_mm256_unpackhi_epi32(two(r), two(r + 1)),
                                       _mm256_unpackhi_epi32(two(r + 2), two(r + 3)));
    }
  }
  return {{(IntRegister)joined(eight[0], eight[1])}};
}
QKV_INLINE Lanes lower_half(const Ints& words) {
  const __m256i half = _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)words.part[0]);
  return {{(Register)_mm512_maskz_cvtph_ps(0xffff, half)}};
}
QKV_INLINE Lanes upper_half(const Ints& words) {
  return lower_half(shifted_down<16>(words));
}

// --- blocks of 32 ----------------------------------------------------------------------------------------------------

// Bytes 0 to 15 and 16 to 31 of neighbouring blocks of two rows. `next`: bytes to the neighbour.
struct HalfBlocks {
  __m512i low, high;
};

template <int Offset>
QKV_INLINE __m512i load_blocks(const uint8_t* a, const uint8_t* b, int64_t next) {
  return load_four(a + Offset, b + Offset, a + next + Offset, b + next + Offset);
}
QKV_INLINE HalfBlocks halves_of(__m512i q) {
  return {low_halves(q), high_halves(q)};
}
QKV_INLINE HalfBlocks half_blocks(Q8_0, const uint8_t* a, const uint8_t* b, int64_t next) {
  const __m512i sign = _mm512_set1_epi8(-128);
  return {_mm512_maskz_xor_epi32(0xffff, load_blocks<2>(a, b, next), sign),
          _mm512_maskz_xor_epi32(0xffff, load_blocks<18>(a, b, next), sign)};
}
QKV_INLINE HalfBlocks half_blocks(Q4_0, const uint8_t* a, const uint8_t* b, int64_t next) {
  return halves_of(load_blocks<2>(a, b, next));
}
QKV_INLINE HalfBlocks half_blocks(Q4_1, const uint8_t* a, const uint8_t* b, int64_t next) {
  return halves_of(load_blocks<4>(a, b, next));
}
// Adds the fifth bits; each block has 32 of them.
template <int Offset>
QKV_INLINE HalfBlocks with_fifth_bits(const HalfBlocks& q, const uint8_t* a, const uint8_t* b, int64_t next) {
  const auto bits = [&](int shift) __attribute__((always_inline)) {
    const auto of = [&](const uint8_t* at) __attribute__((always_inline)) {
      uint16_t half;
      __builtin_memcpy(&half, at + Offset + shift, 2);
      return static_cast<uint64_t>(half);
    };
    return of(a) | of(b) << 16 | of(a + next) << 32 | of(b + next) << 48;
  };
  const __m512i bit = _mm512_set1_epi8(16);
  return {_mm512_mask_add_epi8(q.low, bits(0), q.low, bit), _mm512_mask_add_epi8(q.high, bits(2), q.high, bit)};
}
QKV_INLINE HalfBlocks half_blocks(Q5_0, const uint8_t* a, const uint8_t* b, int64_t next) {
  return with_fifth_bits<2>(halves_of(load_blocks<6>(a, b, next)), a, b, next);
}
QKV_INLINE HalfBlocks half_blocks(Q5_1, const uint8_t* a, const uint8_t* b, int64_t next) {
  return with_fifth_bits<4>(halves_of(load_blocks<8>(a, b, next)), a, b, next);
}
QKV_INLINE HalfBlocks half_blocks(Mxfp4, const uint8_t* a, const uint8_t* b, int64_t next) {
  const __m512i values = load_four(Mxfp4::kTwice, Mxfp4::kTwice, Mxfp4::kTwice, Mxfp4::kTwice);
  const HalfBlocks q = halves_of(load_blocks<1>(a, b, next));
  return {_mm512_shuffle_epi8(values, q.low), _mm512_shuffle_epi8(values, q.high)};
}

struct ScaleAndMinimum {
  Lanes scale, minimum;
};
// All blocks of 32 start with their scale.
template <class Q, class At>
QKV_INLINE ScaleAndMinimum scales_of_rows(At&& at) {
  const Ints words = words_of_rows<Word::first>(at);
  if constexpr (Q::kBytes == Mxfp4::kBytes) {
    const auto exponents = (WordRegister)masked(words, 255).part[0];
    return {{{(Register)Mxfp4::scale_bits(exponents)}}, splat(0)};
  } else {
    return {lower_half(words), upper_half(words)};
  }
}

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
      const ScaleAndMinimum w = scales_of_rows<Q>(at);
      const Lanes scale_x = splat(c.x.scales[block]);
      const Ints sums = splat_int(c.x.sums[block]);
      y = y + to_floats(Minima ? total : total + sums) * (w.scale * scale_x);
      if constexpr (Minima) y = y + to_floats(sums) * (w.minimum * scale_x);
    };
    // Two blocks, or a last odd one as its own neighbour.
    const auto step = [&](int64_t block, int64_t next) __attribute__((always_inline)) {
      const int8_t *x = c.x.q + block * 32, *x_next = x + next * 32;
      const __m512i x_low = load_four(x, x, x_next, x_next);
      const __m512i x_high = load_four(x + 16, x + 16, x_next + 16, x_next + 16);
      const TwoSums sums = sums_of_rows([&](int a, int b) __attribute__((always_inline)) {
        rows.fetch<2 * Q::kBytes>(a);
        const HalfBlocks u = half_blocks(Q{}, rows(a), rows(b), next * Q::kBytes);
        return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), u.low, x_low), u.high, x_high);
      });
      add_block(sums.first, block, 0);
      if (next > 0) add_block(sums.second, block + 1, Q::kBytes);
      rows.advance((1 + next) * Q::kBytes);
    };
    for (int64_t block = 0; block + 2 <= blocks; block += 2) step(block, 1);
    if (blocks % 2 != 0) step(blocks - 1, 0);
    store(c.y + o, y);
  }
}

// --- blocks of 256 ---------------------------------------------------------------------------------------------------

// Shared by all rows of a block: activations, 32 at a time and twice per register; sums of the parts, in the lanes of
// their factors.
struct SharedBlock {
  __m512i x[8], sums;
};

QKV_INLINE __m512i load_rows(const uint8_t* a, const uint8_t* b) {
  return joined(load_32(a), load_32(b));
}
// total += sub * (products of 32 bytes of two rows)
QKV_INLINE __m512i add_products(__m512i total, __m512i u, __m512i x, __m512i sub) {
  return _mm512_dpwssd_epi32(total, _mm512_maddubs_epi16(u, x), sub);
}
// Broadcasts words i and j of both rows' sixteen; i to the lower half of a row's lanes.
QKV_INLINE __m512i words_at(__m512i words, int i, int j) {
  const auto four = [](int k) __attribute__((always_inline)) {
    return static_cast<int64_t>(k * 0x0001000100010001);
  };
  const int64_t a = four(i), b = four(j), c = four(16 + i), d = four(16 + j);
  return _mm512_maskz_permutexvar_epi16(~0U, _mm512_set_epi64(d, d, c, c, b, b, a, a), words);
}

// Parts of 16: I and M in eight lanes of a row each; bytes(i) gives 32 bytes of two rows.
template <class Bytes>
QKV_INLINE __m512i parts_of_16(__m512i subs, __m512i lows, const SharedBlock& s, Bytes&& bytes) {
  __m512i total = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) total = add_products(total, bytes(i), s.x[i], words_at(subs, 2 * i, 2 * i + 1));
  const __m512i lowest = _mm512_madd_epi16(lows, s.sums);
  return _mm512_add_epi32(_mm512_maskz_shuffle_i64x2(0xff, total, lowest, 0x88),
                          _mm512_maskz_shuffle_i64x2(0xff, total, lowest, 0xdd));
}

// Eight subscales and eight lows of each of two rows as words, from blocks that start with two halves and twelve bytes.
QKV_INLINE __m512i six_bits(const uint8_t* a, const uint8_t* b) {
  const __m256i words = load_two(a, b);  // [halves, s, l, upper bits of both] for each row
  const __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0x3f3f3f3f));
  const __m256i last = _mm256_srlv_epi32(_mm256_shuffle_epi32(words, 0xff), _mm256_set_epi32(0, 4, 0, 0, 0, 4, 0, 0));
  const __m256i high = _mm256_or_si256(_mm256_and_si256(last, _mm256_set1_epi32(0x0f0f0f0f)),
                                       _mm256_and_si256(_mm256_srli_epi32(words, 2), _mm256_set1_epi32(0x30303030)));
  const __m256i bytes = _mm256_alignr_epi8(_mm256_unpackhi_epi32(low, high), _mm256_unpacklo_epi32(low, high), 8);
  return _mm512_maskz_cvtepu8_epi16(~0U, bytes);
}
template <class Bytes>
QKV_INLINE __m512i parts_of_32(const uint8_t* a, const uint8_t* b, const SharedBlock& s, Bytes&& bytes) {
  const __m512i six = six_bits(a, b);
  __m512i total = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) total = add_products(total, bytes(i), s.x[i], words_at(six, i, i));
  const __m512i lowest = _mm512_madd_epi16(six, s.sums);  // zero where the subscales are
  return _mm512_add_epi32(_mm512_maskz_shuffle_i64x2(0xff, total, lowest, 0xd8),
                          _mm512_maskz_shuffle_i64x2(0x0f, total, total, 0xdd));
}

QKV_INLINE __m512i two_rows(Q4K, const uint8_t* a, const uint8_t* b, const SharedBlock& s) {
  return parts_of_32(
      a, b, s, [&](int i) __attribute__((always_inline)) {
        const __m512i q = load_rows(a + 16 + i / 2 * 32, b + 16 + i / 2 * 32);
        return i % 2 == 0 ? low_halves(q) : high_halves(q);
      });
}
// u plus `value` where bit i of the byte in `bits` is set.
QKV_INLINE __m512i with_bit(__m512i u, __m512i bits, int i, int8_t value) {
  const __mmask64 set = _mm512_test_epi8_mask(bits, _mm512_set1_epi8(static_cast<int8_t>(1 << i)));
  return _mm512_mask_add_epi8(u, set, u, _mm512_set1_epi8(value));
}
QKV_INLINE __m512i two_rows(Q5K, const uint8_t* a, const uint8_t* b, const SharedBlock& s) {
  const __m512i fifth = load_rows(a + 16, b + 16);
  return parts_of_32(
      a, b, s, [&](int i) __attribute__((always_inline)) {
        const __m512i q = load_rows(a + 48 + i / 2 * 32, b + 48 + i / 2 * 32);
        return with_bit(i % 2 == 0 ? low_halves(q) : high_halves(q), fifth, i, 16);
      });
}

// Bits 2 j and 2 j + 1 of every byte, moved to bit `To`.
template <int To>
QKV_INLINE __m512i two_bits(__m512i q, int j) {
  const __m512i mask = _mm512_set1_epi8(3 << To);
  switch (2 * j - To) {
    case -4:
      return _mm512_maskz_and_epi32(0xffff, words_down<-4>(q), mask);
    case -2:
      return _mm512_maskz_and_epi32(0xffff, words_down<-2>(q), mask);
    case 0:
      return _mm512_maskz_and_epi32(0xffff, q, mask);
    case 2:
      return _mm512_maskz_and_epi32(0xffff, words_down<2>(q), mask);
    case 4:
      return _mm512_maskz_and_epi32(0xffff, words_down<4>(q), mask);
    default:
      return _mm512_maskz_and_epi32(0xffff, words_down<6>(q), mask);
  }
}

QKV_INLINE __m512i two_rows(Q2K, const uint8_t* a, const uint8_t* b, const SharedBlock& s) {
  const __m256i both = load_two(a, b), mask = _mm256_set1_epi8(15);
  const __m512i subs = _mm512_maskz_cvtepu8_epi16(~0U, _mm256_and_si256(both, mask));
  const __m512i lows = _mm512_maskz_cvtepu8_epi16(~0U, _mm256_and_si256(_mm256_srli_epi16(both, 4), mask));
  return parts_of_16(
      subs, lows, s, [&](int i) __attribute__((always_inline)) {
        return two_bits<0>(load_rows(a + 16 + i / 4 * 32, b + 16 + i / 4 * 32), i % 4);
      });
}
QKV_INLINE __m512i two_rows(Q3K, const uint8_t* a, const uint8_t* b, const SharedBlock& s) {
  // Sixteen subscales of six bits in three words: four bits of each in the first two, two bits in the last.
  const auto subs_of = [](const uint8_t* at) __attribute__((always_inline)) {
    uint32_t w[3];
    __builtin_memcpy(w, at + 96, 12);
    const auto four = [&](int i) __attribute__((always_inline)) {
      return static_cast<int>((w[i % 2] >> (i / 2 * 4) & 0x0f0f0f0fU) | (w[2] >> (2 * i) & 0x03030303U) << 4);
    };
    return _mm_set_epi32(four(3), four(2), four(1), four(0));
  };
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(subs_of(a)), subs_of(b), 1);
  const __m512i subs = _mm512_sub_epi16(_mm512_maskz_cvtepu8_epi16(~0U, both), _mm512_set1_epi16(32));
  const __m512i third = load_rows(a, b);
  return parts_of_16(
      subs, subs, s, [&](int i) __attribute__((always_inline)) {
        return with_bit(two_bits<0>(load_rows(a + 32 + i / 4 * 32, b + 32 + i / 4 * 32), i % 4), third, i, 4);
      });
}
QKV_INLINE __m512i two_rows(Q6K, const uint8_t* a, const uint8_t* b, const SharedBlock& s) {
  const __m512i subs = _mm512_maskz_cvtepi8_epi16(~0U, load_two(a + 192, b + 192));
  return parts_of_16(
      subs, subs, s, [&](int i) __attribute__((always_inline)) {
        const int at = i / 4 * 64 + i % 2 * 32, above = 128 + i / 4 * 32;
        const __m512i q = load_rows(a + at, b + at);
        return _mm512_maskz_or_epi32(0xffff, i % 4 < 2 ? low_halves(q) : high_halves(q),
                                     two_bits<4>(load_rows(a + above, b + above), i % 4));
      });
}

// Blocks start or end with a word that holds the scale: in its lower half, with the scale of the minima above; without
// minima in its upper half.
template <class Q>
constexpr Word kScales = Word::last;
template <>
constexpr Word kScales<Q4K> = Word::first;
template <>
constexpr Word kScales<Q5K> = Word::first;

template <class Q, bool Minima>
void blocks_of_256(const InPlaceCall& c) noexcept {
  for (int64_t o = 0; o < c.outputs; o += kPanel) {
    RowsInPlace rows(c, o);
    Lanes y = splat(0);
    for (int64_t block = 0; block < c.shape.blocks(); ++block) {
      SharedBlock s;
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) s.x[i] = twice(load_32(c.x.q + block * 256 + 32 * i));
      const int16_t* part_sums = c.x.part_sums + block * (256 / Q::kPart);
      s.sums = twice(Q::kPart == 16 ? load_32(part_sums)
                                    : _mm256_inserti128_si256(_mm256_setzero_si256(), load_16(part_sums), 1));
      const TwoSums sums = sums_of_rows([&](int a, int b) __attribute__((always_inline)) {
        rows.fetch<Q::kBytes>(a);
        return two_rows(Q{}, rows(a), rows(b), s);
      });
      constexpr int kAt = kScales<Q> == Word::first ? 0 : Q::kBytes - 16;
      const Ints scales =
          words_of_rows<kScales<Q>>([&](int r) __attribute__((always_inline)) { return rows(r) + kAt; });
      const Lanes scale_x = splat(c.x.scales[block]);
      if constexpr (Minima) {
        y = y + to_floats(sums.first) * (lower_half(scales) * scale_x);
        y = y + to_floats(sums.second) * (-upper_half(scales) * scale_x);
      } else {
        const Ints total = sums.first + sums.second * splat_int(-c.shape.offset);
        y = y + to_floats(total) * (upper_half(scales) * scale_x);
      }
      rows.advance(Q::kBytes);
    }
    store(c.y + o, y);
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu

#endif

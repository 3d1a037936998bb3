// Sixteen 32-bit integers, or sixteen groups of four bytes, in as many registers as Lanes (simd.h).
#pragma once

#include "kernels/cpu/isa/simd.h"

#if defined(__SSE2__) && !defined(__AVX2__)
#include <emmintrin.h>
#endif

namespace qkv::kernels::cpu {
namespace {

struct Ints {
  IntRegister part[kParts];
};

QKV_INLINE Ints splat_int(int32_t x) {
  Ints v;
  for (int p = 0; p < kParts; ++p) v.part[p] = x - IntRegister{};
  return v;
}

QKV_INLINE Ints load_words(const void* x) {
  Ints v;
  for (int p = 0; p < kParts; ++p) {
    __builtin_memcpy(&v.part[p], static_cast<const char*>(x) + p * 4 * kRegister, sizeof(IntRegister));
  }
  return v;
}

QKV_INLINE Ints load_signed_bytes(const int8_t* x) {
  Ints v;
#if defined(__AVX512F__)
  v.part[0] = (IntRegister)_mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
#else
  for (int i = 0; i < kLanes; ++i) v.part[i / kRegister][i % kRegister] = x[i];
#endif
  return v;
}

QKV_INLINE Ints operator+(const Ints& a, const Ints& b) {
  Ints v;
  for (int p = 0; p < kParts; ++p) v.part[p] = a.part[p] + b.part[p];
  return v;
}
QKV_INLINE Ints operator*(const Ints& a, const Ints& b) {
  Ints v;
  for (int p = 0; p < kParts; ++p) v.part[p] = a.part[p] * b.part[p];
  return v;
}
QKV_INLINE Ints larger(const Ints& a, const Ints& b) {
  Ints v;
  for (int p = 0; p < kParts; ++p) v.part[p] = a.part[p] > b.part[p] ? a.part[p] : b.part[p];
  return v;
}
QKV_INLINE Ints masked(const Ints& a, uint32_t mask) {
  Ints v;
  for (int p = 0; p < kParts; ++p) v.part[p] = a.part[p] & static_cast<int32_t>(mask);
  return v;
}
template <int Bits>
QKV_INLINE Ints shifted_up(const Ints& a) {
  Ints v;
  for (int p = 0; p < kParts; ++p) v.part[p] = a.part[p] << Bits;
  return v;
}
template <int Bits>
QKV_INLINE Ints shifted_down(const Ints& a) {  // zeros come in
  Ints v;
  for (int p = 0; p < kParts; ++p) v.part[p] = (IntRegister)((WordRegister)a.part[p] >> Bits);
  return v;
}

QKV_INLINE Lanes as_floats(const Ints& a) {  // the same bits
  Lanes v;
  for (int p = 0; p < kParts; ++p) v.part[p] = (Register)a.part[p];
  return v;
}
QKV_INLINE Ints as_ints(const Lanes& a) {
  Ints v;
  for (int p = 0; p < kParts; ++p) v.part[p] = (IntRegister)a.part[p];
  return v;
}
QKV_INLINE Lanes to_floats(const Ints& a) {  // the same values, rounded to nearest even
  Lanes v;
  for (int p = 0; p < kParts; ++p) v.part[p] = __builtin_convertvector(a.part[p], Register);
  return v;
}

// To nearest even, for |x| < 2^22: the sum's low bits are the integer.
QKV_INLINE Ints rounded(const Lanes& x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23
  return as_ints(x + splat(kMagic)) + splat_int(-0x4b400000);
}

// Reduces all lanes to one, by halves; for integers the order does not matter.
template <class Join>
QKV_INLINE int32_t joined(const Ints& v, Join&& join) {
  int32_t all[kLanes];
  __builtin_memcpy(all, &v, sizeof all);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) all[i] = join(all[i], all[i + half]);
  }
  return all[0];
}
QKV_INLINE int32_t sum_of(const Ints& v) {
  return joined(v, [](int32_t a, int32_t b) { return a + b; });
}
QKV_INLINE int32_t largest_of(const Ints& v) {
  return joined(v, [](int32_t a, int32_t b) { return a > b ? a : b; });
}

// --- two 16-bit integers per lane ------------------------------------------------------------------------------------

#if defined(__SSE2__) && !defined(__AVX512F__)
QKV_INLINE IntRegister pair_products(IntRegister a, IntRegister b) {
#if defined(__AVX2__)
  return (IntRegister)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
  return (IntRegister)_mm_madd_epi16((__m128i)a, (__m128i)b);
#endif
}
#endif

// The same pair in every lane.
QKV_INLINE Ints splat_two(const int16_t* x) {
  int32_t word;
  __builtin_memcpy(&word, x, 4);
  return splat_int(word);
}
QKV_INLINE Ints dot2(const Ints& sums, const Ints& a, const Ints& b) {
  Ints v;
  for (int p = 0; p < kParts; ++p) {
#if defined(__AVX512VNNI__)
    v.part[p] = (IntRegister)_mm512_dpwssd_epi32((__m512i)sums.part[p], (__m512i)a.part[p], (__m512i)b.part[p]);
#elif defined(__SSE2__)
    v.part[p] = sums.part[p] + pair_products(a.part[p], b.part[p]);
#else
    const IntRegister low = ((a.part[p] << 16) >> 16) * ((b.part[p] << 16) >> 16);
    v.part[p] = sums.part[p] + low + (a.part[p] >> 16) * (b.part[p] >> 16);
#endif
  }
  return v;
}

// --- four bytes per lane ---------------------------------------------------------------------------------------------

// Four signed bytes, the same in every lane, for dot4. Without an instruction for bytes: columns 0 and 2, and columns 1
// and 3, as pairs of 16 bits, whose products and sums of two are exact.
#if defined(__AVX512VNNI__)
struct Four {
  IntRegister bytes;
};
QKV_INLINE Four splat_four(const int8_t* x) {
  int32_t word;
  __builtin_memcpy(&word, x, 4);
  return {word - IntRegister{}};
}
QKV_INLINE Ints dot4(const Ints& sums, const Ints& w, const Four& x) {
  return {{(IntRegister)_mm512_dpbusd_epi32((__m512i)sums.part[0], (__m512i)w.part[0], (__m512i)x.bytes)}};
}
#elif defined(__SSE2__)
struct Four {
  IntRegister even, odd;
};
QKV_INLINE Four splat_four(const int8_t* x) {
  const auto pair = [x](int a, int b) {
    return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint16_t>(x[a])) |
                                static_cast<uint32_t>(static_cast<uint16_t>(x[b])) << 16);
  };
  return {pair(0, 2) - IntRegister{}, pair(1, 3) - IntRegister{}};
}
QKV_INLINE Ints dot4(const Ints& sums, const Ints& w, const Four& x) {
  Ints v;
  for (int p = 0; p < kParts; ++p) {
    const IntRegister even = w.part[p] & 0x00ff00ff;
    const IntRegister odd = (IntRegister)((WordRegister)w.part[p] >> 8) & 0x00ff00ff;
    v.part[p] = sums.part[p] + (pair_products(even, x.even) + pair_products(odd, x.odd));
  }
  return v;
}
#else
struct Four {
  int32_t x[4];
};
QKV_INLINE Four splat_four(const int8_t* x) {
  return {{x[0], x[1], x[2], x[3]}};
}
QKV_INLINE Ints dot4(const Ints& sums, const Ints& w, const Four& x) {
  Ints v = sums;
  for (int p = 0; p < kParts; ++p) {
    const WordRegister words = (WordRegister)w.part[p];
    for (int i = 0; i < 4; ++i) v.part[p] += (IntRegister)((words >> (8 * i)) & 255U) * x.x[i];
  }
  return v;
}
#endif

}  // namespace
}  // namespace qkv::kernels::cpu

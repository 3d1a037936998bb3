// Sixteen floats in one, two or four registers. Everything here has internal linkage: see isa_kernels.h.
#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace qkv::kernels::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kRegister = 16;
#elif defined(__AVX2__)
constexpr int kRegister = 8;
#else
constexpr int kRegister = 4;
#endif
constexpr int kLanes = 16, kParts = kLanes / kRegister;

typedef float Register __attribute__((vector_size(kRegister * 4)));
typedef int32_t IntRegister __attribute__((vector_size(kRegister * 4)));
typedef uint16_t HalfRegister __attribute__((vector_size(kRegister * 2)));
typedef uint32_t WordRegister __attribute__((vector_size(kRegister * 4)));

struct Lanes {
  Register part[kParts];
};

#define QKV_INLINE static inline __attribute__((always_inline))

QKV_INLINE Register splat_register(float x) {
  return x - Register{};
}

QKV_INLINE Lanes splat(float x) {
  Lanes v;
  for (int p = 0; p < kParts; ++p) v.part[p] = splat_register(x);
  return v;
}

QKV_INLINE Lanes load(const float* x) {
  Lanes v;
  for (int p = 0; p < kParts; ++p) __builtin_memcpy(&v.part[p], x + p * kRegister, sizeof(Register));
  return v;
}

QKV_INLINE Register widened(HalfRegister x) {
#if defined(__AVX512F__)  // one instruction; GCC emits five for the plain C++
  const auto words = (WordRegister)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)x);
#elif defined(__AVX2__)
  const auto words = (WordRegister)_mm256_cvtepu16_epi32((__m128i)x);
#else
  const auto words = __builtin_convertvector(x, WordRegister);
#endif
  return (Register)(words << 16);
}

QKV_INLINE Lanes load(const uint16_t* x) {
  Lanes v;
  for (int p = 0; p < kParts; ++p) {
    HalfRegister half;
    __builtin_memcpy(&half, x + p * kRegister, sizeof(half));
    v.part[p] = widened(half);
  }
  return v;
}

// The first `count` elements, then zeros; reads nothing past the end.
#if defined(__AVX512F__)
QKV_INLINE __mmask16 first_bits(int64_t count) {
  return static_cast<__mmask16>((1U << count) - 1U);
}
QKV_INLINE Lanes load_some(const float* x, int64_t count) {
  return {{(Register)_mm512_maskz_loadu_ps(first_bits(count), x)}};
}
QKV_INLINE Lanes load_some(const uint16_t* x, int64_t count) {
  return {{widened((HalfRegister)_mm256_maskz_loadu_epi16(first_bits(count), x))}};
}
#else
template <class T>
QKV_INLINE Lanes load_some(const T* x, int64_t count) {
  T padded[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) padded[i] = x[i];
  return load(padded);
}
#endif

QKV_INLINE void store(float* y, const Lanes& v) {
  for (int p = 0; p < kParts; ++p) __builtin_memcpy(y + p * kRegister, &v.part[p], sizeof(Register));
}

// To bf16: to nearest, ties to even; NaN stays NaN.
QKV_INLINE HalfRegister narrowed(Register v) {
#if defined(__AVX512BF16__)  // one instruction, but it flushes denormals
  constexpr int kDenormal = 0x20;
  if (_mm512_fpclass_ps_mask((__m512)v, kDenormal) == 0) return (HalfRegister)_mm512_cvtneps_pbh((__m512)v);
#endif
  const WordRegister bits = (WordRegister)v;
  const WordRegister rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const WordRegister kept = v != v ? (bits | 0x400000U) : rounded;
  return __builtin_convertvector(kept >> 16, HalfRegister);
}

QKV_INLINE void store(uint16_t* y, const Lanes& v) {
  for (int p = 0; p < kParts; ++p) {
    const HalfRegister half = narrowed(v.part[p]);
    __builtin_memcpy(y + p * kRegister, &half, sizeof(half));
  }
}

// The first `count` lanes; writes nothing past the end.
#if defined(__AVX512F__)
QKV_INLINE void store_some(float* y, const Lanes& v, int64_t count) {
  _mm512_mask_storeu_ps(y, first_bits(count), (__m512)v.part[0]);
}
QKV_INLINE void store_some(uint16_t* y, const Lanes& v, int64_t count) {
  _mm256_mask_storeu_epi16(y, first_bits(count), (__m256i)narrowed(v.part[0]));
}
#else
template <class T>
QKV_INLINE void store_some(T* y, const Lanes& v, int64_t count) {
  T all[kLanes];
  store(all, v);
  for (int64_t i = 0; i < count; ++i) y[i] = all[i];
}
#endif

QKV_INLINE Register multiply_add(Register a, Register b, Register c) {
#if defined(__AVX512F__)
  return (Register)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Register)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

QKV_INLINE Lanes multiply_add(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes v;
  for (int p = 0; p < kParts; ++p) v.part[p] = multiply_add(a.part[p], b.part[p], c.part[p]);
  return v;
}

// The tree of isa_kernels.h: i + (i + 8), then 4, 2, 1.
QKV_INLINE float sum(const Lanes& v) {
#if defined(__AVX2__)
  typedef float Eight __attribute__((vector_size(32)));
#if defined(__AVX512F__)
  const Register all = v.part[0];
  const Eight sums = __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const Eight sums = v.part[0] + v.part[1];
#endif
  const __m256 eight = (__m256)sums;
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
  const Register four = (v.part[0] + v.part[2]) + (v.part[1] + v.part[3]);
  return (four[0] + four[2]) + (four[1] + four[3]);
#endif
}

// --- arithmetic lane by lane -----------------------------------------------------------------------------------------

template <class F>
QKV_INLINE Lanes each(const Lanes& a, F&& f) {
  Lanes v;
  for (int p = 0; p < kParts; ++p) v.part[p] = f(a.part[p]);
  return v;
}

template <class F>
QKV_INLINE Lanes each(const Lanes& a, const Lanes& b, F&& f) {
  Lanes v;
  for (int p = 0; p < kParts; ++p) v.part[p] = f(a.part[p], b.part[p]);
  return v;
}

QKV_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
  return each(a, b, [](Register x, Register y) { return x + y; });
}
QKV_INLINE Lanes operator-(const Lanes& a, const Lanes& b) {
  return each(a, b, [](Register x, Register y) { return x - y; });
}
QKV_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
  return each(a, b, [](Register x, Register y) { return x * y; });
}
QKV_INLINE Lanes operator/(const Lanes& a, const Lanes& b) {
  return each(a, b, [](Register x, Register y) { return x / y; });
}
QKV_INLINE Lanes operator-(const Lanes& a) {
  return each(a, [](Register x) { return -x; });
}

// Minimum and maximum; a NaN in `a` is kept.
QKV_INLINE Lanes minimum(const Lanes& a, const Lanes& b) {
  return each(a, b, [](Register x, Register y) { return y < x ? y : x; });
}
QKV_INLINE Lanes maximum(const Lanes& a, const Lanes& b) {
  return each(a, b, [](Register x, Register y) { return y > x ? y : x; });
}

QKV_INLINE Lanes absolute(const Lanes& a) {
  return each(a, [](Register x) { return (Register)((IntRegister)x & 0x7fffffff); });
}

QKV_INLINE Lanes square_root(const Lanes& a) {
  return each(a, [](Register x) {
#if defined(__AVX512F__)
    return (Register)_mm512_maskz_sqrt_ps(0xffff, (__m512)x);
#elif defined(__AVX2__)
    return (Register)_mm256_sqrt_ps((__m256)x);
#else
    for (int i = 0; i < kRegister; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
  });
}

// a < b ? yes : no
QKV_INLINE Lanes if_less(const Lanes& a, const Lanes& b, const Lanes& yes, const Lanes& no) {
  Lanes v;
  for (int p = 0; p < kParts; ++p) v.part[p] = a.part[p] < b.part[p] ? yes.part[p] : no.part[p];
  return v;
}

// The first `count` lanes of v, then `other`.
QKV_INLINE Lanes first_lanes(const Lanes& v, int64_t count, const Lanes& other) {
  static constexpr float kNumbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return if_less(load(kNumbers), splat(static_cast<float>(count)), v, other);
}

QKV_INLINE float largest(const Lanes& v) {
  float all[kLanes];
  store(all, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) all[i] = all[i + half] > all[i] ? all[i + half] : all[i];
  }
  return all[0];
}

QKV_INLINE float first(const Lanes& v) {
  return v.part[0][0];
}

}  // namespace
}  // namespace qkv::kernels::cpu

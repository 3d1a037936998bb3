// exp on sixteen lanes: 2^n e^r with r in [-ln 2 / 2, ln 2 / 2], e^r by its Taylor series to the seventh power
// (relative truncation error below 6e-9). Largest error against double: 1.2 ulp, 0.92 with fused multiply-add
// (tests/kernels/isa_kernels_test.cpp). Below -87.33 the result is 0, as denormals are flushed everywhere. Above 88.72
// it is infinite; NaN stays NaN.
#pragma once

#include "kernels/cpu/isa/simd.h"

namespace qkv::kernels::cpu {
namespace {

// e^(x + small), for arguments with more digits than one float has; |small| < 0.03.
QKV_INLINE Register exp_register(Register x, const Register* small = nullptr) {
  const Register lowest = splat_register(-87.33F), highest = splat_register(89.0F);
  const IntRegister vanishes = x < lowest;
  x = x > highest ? highest : x;
  x = vanishes ? lowest : x;
  const Register magic = splat_register(12582912.0F);  // adding and subtracting it rounds to an integer
  const Register shifted = x * 1.44269504F + magic, n = shifted - magic;
  // ln 2 in two parts: n times the first is exact.
  Register r = multiply_add(n, splat_register(-0.693359375F), x);
  r = multiply_add(n, splat_register(2.12194440e-4F), r);
  if (small != nullptr) r += *small;
  constexpr float kTerms[] = {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F};
  Register y = splat_register(1.0F / 5040);
  for (const float c : kTerms) y = multiply_add(y, r, splat_register(c));
#if defined(__AVX512F__)
  const auto result = (Register)_mm512_maskz_scalef_ps(0xffff, (__m512)y, (__m512)n);
#else
  // 2^n in two factors: 2^128 is infinite, but y 2^128 may be finite.
  const IntRegister whole = (IntRegister)shifted - 0x4b400000, half = whole >> 1;
  const Register result = y * (Register)((half + 127) << 23) * (Register)((whole - half + 127) << 23);
#endif
  return vanishes ? Register{} : result;
}

QKV_INLINE Lanes exp(const Lanes& x, const Lanes& small) {
  return each(x, small, [](Register a, Register b) { return exp_register(a, &b); });
}

QKV_INLINE Lanes exp(const Lanes& x) {
  return each(x, [](Register a) { return exp_register(a); });
}

}  // namespace
}  // namespace qkv::kernels::cpu

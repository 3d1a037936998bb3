#pragma once

#include <cstdint>

#include "cuda_runtime_api.h"

struct __nv_bfloat16 {
  uint16_t bits;
  explicit operator float() const { return __uint_as_float(unsigned{bits} << 16); }
};
using __nv_bfloat16_raw = __nv_bfloat16;
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline float __bfloat162float(__nv_bfloat16 x) {
  return static_cast<float>(x);
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  const unsigned u = __float_as_uint(x);
  if ((u & 0x7fffffffU) > 0x7f800000U) return {0x7fff};
  return {static_cast<uint16_t>((u + 0x7fffU + (u >> 16 & 1U)) >> 16)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline float2 __bfloat1622float2(__nv_bfloat162 x) {
  return {__bfloat162float(x.x), __bfloat162float(x.y)};
}

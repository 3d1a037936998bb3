#pragma once

#include <cstdint>

#include "base/half.h"

struct __half {
  uint16_t bits;
  explicit operator float() const { return qkv::to_float(qkv::F16{bits}); }
};
inline float __half2float(__half x) {
  return static_cast<float>(x);
}
inline __half __float2half_rn(float x) {
  return {qkv::to_f16(x).bits};
}
inline __half __ushort_as_half(uint16_t bits) {
  return {bits};
}

// The two 8-bit floats: e4m3 (no infinities, 0x7f and 0xff are NaN, at most 448) and e5m2 (as IEEE).
#pragma once

#include <bit>
#include <cstdint>

#include "base/half.h"

namespace qkv {

struct F8E4M3 {
  uint8_t bits = 0;
};
struct F8E5M2 {
  uint8_t bits = 0;
};

inline float to_float(F8E4M3 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x80U) << 24;
  const uint32_t magnitude = x.bits & 0x7fU;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000U);
  if (magnitude >= 8) return std::bit_cast<float>(sign | ((magnitude + (120U << 3)) << 20));
  const float tiny = static_cast<float>(magnitude) * 0x1p-9F;  // zero and subnormals
  return sign != 0 ? -tiny : tiny;
}

// The upper half of an F16.
inline float to_float(F8E5M2 x) {
  return to_float(F16{static_cast<uint16_t>(x.bits << 8)});
}

}  // namespace qkv

// The two 16-bit floats and their conversions.
#pragma once

#include <bit>
#include <cstdint>

namespace qkv {

struct Bf16 {
  uint16_t bits = 0;
};
struct F16 {
  uint16_t bits = 0;
};

inline float to_float(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

inline float to_float(F16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000U) << 16;
  const uint32_t exponent = (x.bits >> 10) & 0x1fU;
  const uint32_t mantissa = x.bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  const float tiny = static_cast<float>(mantissa) * 0x1p-24F;  // zero and subnormals
  return sign != 0 ? -tiny : tiny;
}

// Both round to nearest, ties to even; a NaN stays a NaN.
inline Bf16 to_bf16(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffU) > 0x7f800000U) return {static_cast<uint16_t>((u >> 16) | 0x40U)};
  return {static_cast<uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16)};
}

inline F16 to_f16(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000U);
  const uint32_t magnitude = u & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return {static_cast<uint16_t>(sign | 0x7e00U)};
  if (magnitude >= 0x477ff000U) return {static_cast<uint16_t>(sign | 0x7c00U)};  // rounds past 65504: infinity
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 1/2 leaves the subnormal's bits, rounded, at the bottom
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U))};
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13))};
}

}  // namespace qkv

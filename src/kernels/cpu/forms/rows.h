// Work along one row: conversions between f32 and bf16.
#pragma once

#include "kernels/cpu/forms/simd.h"

namespace qkv::kernels::cpu {
namespace {

void widen(float* y, const uint16_t* x, int64_t count) noexcept {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) store(y + i, load(x + i));
  if (whole < count) store_some(y + whole, load_some(x + whole, count - whole), count - whole);
}

void narrow(uint16_t* y, const float* x, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t u;
    __builtin_memcpy(&u, x + i, sizeof(u));
    const uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    const bool nan = (u & 0x7fffffffU) > 0x7f800000U;
    y[i] = static_cast<uint16_t>(nan ? (u >> 16) | 0x40U : rounded);
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu

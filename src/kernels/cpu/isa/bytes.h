// A row as bytes with one scale, and back: the i8 format of cached keys and values.
#pragma once

#include "kernels/cpu/isa/rows.h"

namespace qkv::kernels::cpu {
namespace {

QKV_INLINE Lanes load(const int8_t* x) {
  Lanes v;
  for (int p = 0; p < kParts; ++p) {
    typedef int8_t Bytes __attribute__((vector_size(kRegister)));
    Bytes bytes;
    __builtin_memcpy(&bytes, x + p * kRegister, sizeof(bytes));
#if defined(__AVX512F__)
    const auto words = (IntRegister)_mm512_maskz_cvtepi8_epi32(0xffff, (__m128i)bytes);
#else
    const auto words = __builtin_convertvector(bytes, IntRegister);
#endif
    v.part[p] = __builtin_convertvector(words, Register);
  }
  return v;
}

void widen_bytes(const WidenBytes& w) noexcept {
  for (int64_t r = 0; r < w.rows; ++r) {
    const int8_t* x = w.x + r * w.x_stride;
    float* y = w.y + r * w.cols;
    const Lanes times = splat(w.scales[r * w.scale_stride]);
    along(
        w.cols, QKV_STEP(=) {
          if (n == kLanes) return store(y + i, times * load(x + i));
          int8_t some[kLanes] = {};
          for (int64_t c = 0; c < n; ++c) some[c] = x[i + c];
          store_some(y + i, times * load(some), n);
        });
  }
}

float put_bytes(int8_t* y, FloatRow x, int64_t count) noexcept {
  Lanes top = splat(0), strange = splat(0);  // x - x is 0 unless x is not finite
  along(count, [&](int64_t i, int64_t n) {
    const Lanes v = load(x, i, n);
    top = maximum(top, absolute(v));
    strange = strange + (v - v);
  });
  const float highest = largest(top);
  const bool finite = sum(strange) == 0, zero = !finite || highest < 0x1p-100F;  // kSmallestScaled
  const float scale = !finite ? __builtin_nanf("") : zero ? 0 : highest / 127;
  const Lanes by = splat(scale), magic = splat(12582912.0F);  // adding 1.5 * 2^23 rounds to an integer
  along(
      count, QKV_STEP(=) {
        float whole[kLanes];
        store(whole, zero ? splat(0) : (load(x, i, n) / by + magic) - magic);
        for (int64_t c = 0; c < n; ++c) y[i + c] = static_cast<int8_t>(whole[c]);
      });
  return scale;
}

}  // namespace
}  // namespace qkv::kernels::cpu

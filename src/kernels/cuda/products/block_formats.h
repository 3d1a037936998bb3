// Weights in blocks as the integer tensor core takes them: 32 columns of a row at a time, spread over four threads as
// signed bytes with their offset taken away, and the scales that go with them (docs/kernels.md).
#pragma once

#include "core/panels.h"
#include "kernels/cuda/access.h"

namespace qkv::kernels::cuda {

// Four bytes from an even address, or one that is a multiple of four.
template <int kBytesOfBlock>
__device__ uint32_t four_bytes(const uint8_t* at) {
  if constexpr (kBytesOfBlock % 4 == 0) return __ldg(reinterpret_cast<const uint32_t*>(at));
  const auto* halves = reinterpret_cast<const uint16_t*>(at);
  return __ldg(halves) | static_cast<uint32_t>(__ldg(halves + 1)) << 16;
}
__device__ inline float half_at(const uint8_t* at) {
  return __half2float(__ushort_as_half(__ldg(reinterpret_cast<const uint16_t*>(at))));
}
// Takes an offset from four bytes below 128.
__device__ inline uint32_t less(uint32_t bytes, uint32_t offset) {
  return ((bytes | 0x80808080U) - offset * 0x01010101U) ^ 0x80808080U;
}
// Bits 0 to 3, each the lowest of a byte.
__device__ inline uint32_t spread(uint32_t bits) {
  return ((bits & 15U) * 0x00204081U) & 0x01010101U;
}

// What a format says. words(block, c, t): columns 32 c + 4 t .. + 3 and 32 c + 16 + 4 t .. + 3 of a block.
struct OneScale {
  static constexpr int kElements = 32;
  static constexpr bool kMinima = false, kSubscales = false, kHalfParts = false;
  static __device__ float minimum(const uint8_t*) { return 0; }
  static __device__ int sub(const uint8_t*, int) { return 1; }
  static __device__ int low(const uint8_t*, int) { return 1; }
};
template <int kBytesOfBlock, int kOffset, int kAt, int kHighAt>
struct Halves : OneScale {  // sixteen bytes of two nibbles each
  static constexpr int kBytes = kBytesOfBlock;
  static __device__ float scale(const uint8_t* b) { return half_at(b); }
  static __device__ void words(const uint8_t* b, int, int t, uint32_t& first, uint32_t& second) {
    const uint32_t both = four_bytes<kBytes>(b + kAt + 4 * t);
    first = both & 0x0f0f0f0fU;
    second = both >> 4 & 0x0f0f0f0fU;
    if (kHighAt > 0) {
      const uint32_t high = four_bytes<kBytes>(b + kHighAt);
      first |= spread(high >> (4 * t)) << 4;
      second |= spread(high >> (16 + 4 * t)) << 4;
    }
    if (kOffset > 0) {
      first = less(first, kOffset);
      second = less(second, kOffset);
    }
  }
};
struct Q8_0 : OneScale {
  static constexpr int kBytes = 34;
  static __device__ float scale(const uint8_t* b) { return half_at(b); }
  static __device__ void words(const uint8_t* b, int, int t, uint32_t& first, uint32_t& second) {
    first = four_bytes<kBytes>(b + 2 + 4 * t);
    second = four_bytes<kBytes>(b + 18 + 4 * t);
  }
};
struct Q4_0 : Halves<18, 8, 2, 0> {};
struct Q5_0 : Halves<22, 16, 6, 2> {};
struct Q4_1 : Halves<20, 0, 4, 0> {
  static constexpr bool kMinima = true;
  static __device__ float minimum(const uint8_t* b) { return half_at(b + 2); }
};
struct Q5_1 : Halves<24, 0, 8, 4> {
  static constexpr bool kMinima = true;
  static __device__ float minimum(const uint8_t* b) { return half_at(b + 2); }
};
struct Mxfp4 : OneScale {  // twice the numbers, half the scale
  static constexpr int kBytes = 17;
  static __device__ float scale(const uint8_t* b) {
    const uint32_t e = __ldg(b);
    return __uint_as_float(e == 255 ? 0x7fc00000U : e == 0 ? 0x200000U : e == 1 ? 0x400000U : (e - 1) << 23);
  }
  static __device__ uint32_t twice(uint32_t q) {  // 0 1 2 3 4 6 8 12, and below zero
    uint32_t which = q & 0x07070707U;
    which = (which | which >> 4) & 0x00ff00ffU;
    const uint32_t size = __byte_perm(0x03020100U, 0x0c080604U, (which | which >> 8) & 0xffffU);
    const uint32_t negative = q >> 3 & 0x01010101U;
    return __vadd4(size ^ negative * 255U, negative);
  }
  static __device__ void words(const uint8_t* b, int, int t, uint32_t& first, uint32_t& second) {
    const uint8_t* at = b + 1 + 4 * t;  // at any address
    const uint32_t both = __ldg(at) | static_cast<uint32_t>(__ldg(at + 1)) << 8 |
                          static_cast<uint32_t>(__ldg(at + 2)) << 16 | static_cast<uint32_t>(__ldg(at + 3)) << 24;
    first = twice(both & 0x0f0f0f0fU);
    second = twice(both >> 4 & 0x0f0f0f0fU);
  }
};

struct WideBlock {
  static constexpr int kElements = 256;
  static constexpr bool kMinima = false, kSubscales = true, kHalfParts = true;
  static __device__ float minimum(const uint8_t*) { return 0; }
  static __device__ int low(const uint8_t*, int) { return 0; }
};
// Columns 32 c .. of 64 bytes with four columns each.
template <int kBytesOfBlock>
__device__ void quarters(const uint8_t* q, int c, int t, uint32_t& first, uint32_t& second) {
  const uint8_t* at = q + 32 * (c / 4) + 4 * t;
  first = four_bytes<kBytesOfBlock>(at) >> (2 * (c % 4)) & 0x03030303U;
  second = four_bytes<kBytesOfBlock>(at + 16) >> (2 * (c % 4)) & 0x03030303U;
}
struct Q2K : WideBlock {
  static constexpr int kBytes = 84;
  static constexpr bool kMinima = true;
  static __device__ float scale(const uint8_t* b) { return half_at(b + 80); }
  static __device__ float minimum(const uint8_t* b) { return -half_at(b + 82); }
  static __device__ int sub(const uint8_t* b, int part) { return __ldg(b + part) & 15; }
  static __device__ int low(const uint8_t* b, int part) { return __ldg(b + part) >> 4; }
  static __device__ void words(const uint8_t* b, int c, int t, uint32_t& first, uint32_t& second) {
    quarters<kBytes>(b + 16, c, t, first, second);
  }
};
struct Q3K : WideBlock {
  static constexpr int kBytes = 110;
  static __device__ float scale(const uint8_t* b) { return half_at(b + 108); }
  static __device__ int sub(const uint8_t* b, int part) {
    const uint8_t* s = b + 96;
    const int below = part < 8 ? __ldg(s + part) & 15 : __ldg(s + part - 8) >> 4;
    return (below | ((__ldg(s + 8 + part % 4) >> (2 * (part / 4))) & 3) << 4) - 32;
  }
  static __device__ void words(const uint8_t* b, int c, int t, uint32_t& first, uint32_t& second) {
    quarters<kBytes>(b + 32, c, t, first, second);
    first = less(first | (four_bytes<kBytes>(b + 4 * t) >> c & 0x01010101U) << 2, 4);
    second = less(second | (four_bytes<kBytes>(b + 16 + 4 * t) >> c & 0x01010101U) << 2, 4);
  }
};
struct SixBits : WideBlock {  // eight subscales and eight lows in twelve bytes
  static constexpr bool kMinima = true, kHalfParts = false;
  static __device__ float scale(const uint8_t* b) { return half_at(b); }
  static __device__ float minimum(const uint8_t* b) { return -half_at(b + 2); }
  static __device__ int sub(const uint8_t* b, int part) {
    const uint8_t* s = b + 4;
    return part < 4 ? __ldg(s + part) & 63 : (__ldg(s + part + 4) & 15) | __ldg(s + part - 4) >> 6 << 4;
  }
  static __device__ int low(const uint8_t* b, int part) {
    const uint8_t* s = b + 4;
    return part < 4 ? __ldg(s + part + 4) & 63 : __ldg(s + part + 4) >> 4 | __ldg(s + part) >> 6 << 4;
  }
};
struct Q4K : SixBits {
  static constexpr int kBytes = 144;
  static __device__ void words(const uint8_t* b, int c, int t, uint32_t& first, uint32_t& second) {
    const uint8_t* at = b + 16 + 32 * (c / 2) + 4 * t;
    first = four_bytes<kBytes>(at) >> (4 * (c % 2)) & 0x0f0f0f0fU;
    second = four_bytes<kBytes>(at + 16) >> (4 * (c % 2)) & 0x0f0f0f0fU;
  }
};
struct Q5K : SixBits {
  static constexpr int kBytes = 176;
  static __device__ void words(const uint8_t* b, int c, int t, uint32_t& first, uint32_t& second) {
    const uint8_t* at = b + 48 + 32 * (c / 2) + 4 * t;
    first = (four_bytes<kBytes>(at) >> (4 * (c % 2)) & 0x0f0f0f0fU) |
            (four_bytes<kBytes>(b + 16 + 4 * t) >> c & 0x01010101U) << 4;
    second = (four_bytes<kBytes>(at + 16) >> (4 * (c % 2)) & 0x0f0f0f0fU) |
             (four_bytes<kBytes>(b + 32 + 4 * t) >> c & 0x01010101U) << 4;
  }
};
struct Q6K : WideBlock {
  static constexpr int kBytes = 210;
  static __device__ float scale(const uint8_t* b) { return half_at(b + 208); }
  static __device__ int sub(const uint8_t* b, int part) { return static_cast<int8_t>(__ldg(b + 192 + part)); }
  static __device__ void words(const uint8_t* b, int c, int t, uint32_t& first, uint32_t& second) {
    const int j = c % 4;
    const uint8_t* at = b + 64 * (c / 4) + 32 * (j % 2) + 4 * t;
    quarters<kBytes>(b + 128, c, t, first, second);
    first = less(first << 4 | (four_bytes<kBytes>(at) >> (4 * (j / 2)) & 0x0f0f0f0fU), 32);
    second = less(second << 4 | (four_bytes<kBytes>(at + 16) >> (4 * (j / 2)) & 0x0f0f0f0fU), 32);
  }
};

}  // namespace qkv::kernels::cuda

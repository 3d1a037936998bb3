// GGUF blocks to bytes, scales and subscales. The meaning of the bits is fixed by the file format; blocks are not
// aligned.
#pragma once

#include "kernels/cpu/isa/int_isa_kernels.h"
#include "kernels/cpu/isa/ints.h"

namespace qkv::kernels::cpu {
namespace {

// IEEE half precision; subnormals keep their value whatever the thread's float mode.
QKV_INLINE float half_at(const uint8_t* at) {
  const uint32_t bits = at[0] | static_cast<uint32_t>(at[1]) << 8;
  const uint32_t sign = (bits & 0x8000U) << 16, rest = bits & 0x7fffU;
  if (rest < 0x400U) {
    const float tiny = static_cast<float>(rest) * 0x1p-24F;
    return sign != 0 ? -tiny : tiny;
  }
  const uint32_t word = sign | (rest >= 0x7c00U ? 0x7f800000U | (rest & 0x3ffU) << 13 : (rest << 13) + 0x38000000U);
  float value;
  __builtin_memcpy(&value, &word, 4);
  return value;
}

// One decoded block: bytes in the order of the row, and their scales.
struct Decoded {
  uint8_t u[256];
  float scale = 0, minimum = 0;
  int8_t sub[16], low[16];
};

// Sixteen bytes of two nibbles each: elements 0 to 15 in the low ones, 16 to 31 in the high ones.
QKV_INLINE void decode_halves(const uint8_t* from, uint8_t* u) {
  typedef uint8_t Sixteen __attribute__((vector_size(16)));
  Sixteen q;
  __builtin_memcpy(&q, from, 16);
  const Sixteen below = q & 15, above = q >> 4;
  __builtin_memcpy(u, &below, 16);
  __builtin_memcpy(u + 16, &above, 16);
}
QKV_INLINE void add_fifth_bits(const uint8_t* from, uint8_t* u) {
  uint32_t bits;
  __builtin_memcpy(&bits, from, 4);
  for (int i = 0; i < 32; ++i) u[i] = static_cast<uint8_t>(u[i] | ((bits >> i) & 1U) << 4);
}

struct Q8_0 {
  static constexpr int kBytes = 34, kElements = 32, kPart = 32;
  static void decode(const uint8_t* b, Decoded& d) {
    d.scale = half_at(b);
    for (int i = 0; i < 32; ++i) d.u[i] = b[2 + i] ^ 0x80U;
  }
};
struct Q4_0 {
  static constexpr int kBytes = 18, kElements = 32, kPart = 32;
  static void decode(const uint8_t* b, Decoded& d) {
    d.scale = half_at(b);
    decode_halves(b + 2, d.u);
  }
};
struct Q4_1 {
  static constexpr int kBytes = 20, kElements = 32, kPart = 32;
  static void decode(const uint8_t* b, Decoded& d) {
    d.scale = half_at(b);
    d.minimum = half_at(b + 2);
    decode_halves(b + 4, d.u);
  }
};
struct Q5_0 {
  static constexpr int kBytes = 22, kElements = 32, kPart = 32;
  static void decode(const uint8_t* b, Decoded& d) {
    d.scale = half_at(b);
    decode_halves(b + 6, d.u);
    add_fifth_bits(b + 2, d.u);
  }
};
struct Q5_1 {
  static constexpr int kBytes = 24, kElements = 32, kPart = 32;
  static void decode(const uint8_t* b, Decoded& d) {
    d.scale = half_at(b);
    d.minimum = half_at(b + 2);
    decode_halves(b + 8, d.u);
    add_fifth_bits(b + 4, d.u);
  }
};

struct Mxfp4 {
  static constexpr int kBytes = 17, kElements = 32, kPart = 32;
  // Twice the values of a 4-bit float, plus the offset 12; the scale is half of 2^(e - 127).
  static constexpr uint8_t kTwice[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  template <class Word>  // a word, or a vector of them
  static Word scale_bits(Word e) {
    const Word usual = (e - 1) << 23;
    const Word tiny = e == 0 ? Word{} + 0x200000U : Word{} + 0x400000U, nan = Word{} + 0x7fc00000U;
    return e == 255 ? nan : e < 2 ? tiny : usual;
  }
  static float scale(const uint8_t* b) {
    const auto bits = scale_bits<uint32_t>(b[0]);
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
  }
  static void decode(const uint8_t* b, Decoded& d) {
    d.scale = scale(b);
    decode_halves(b + 1, d.u);
    for (int i = 0; i < 32; ++i) d.u[i] = kTwice[d.u[i]];
  }
};

// Element 128 h + 32 j + l of 64 bytes: bits 2 j and 2 j + 1 of byte 32 h + l.
QKV_INLINE void decode_quarters(const uint8_t* from, uint8_t* u) {
  for (int h = 0; h < 2; ++h) {
    for (int j = 0; j < 4; ++j) {
      for (int l = 0; l < 32; ++l) u[128 * h + 32 * j + l] = (from[32 * h + l] >> (2 * j)) & 3;
    }
  }
}

struct Q2K {
  static constexpr int kBytes = 84, kElements = 256, kPart = 16;
  static void decode(const uint8_t* b, Decoded& d) {
    for (int i = 0; i < 16; ++i) {
      d.sub[i] = b[i] & 15;
      d.low[i] = static_cast<int8_t>(b[i] >> 4);
    }
    decode_quarters(b + 16, d.u);
    d.scale = half_at(b + 80);
    d.minimum = -half_at(b + 82);
  }
};
struct Q3K {
  static constexpr int kBytes = 110, kElements = 256, kPart = 16;
  static void decode(const uint8_t* b, Decoded& d) {
    decode_quarters(b + 32, d.u);
    for (int j = 0; j < 8; ++j) {
      for (int l = 0; l < 32; ++l) {
        d.u[32 * j + l] = static_cast<uint8_t>(d.u[32 * j + l] | ((b[l] >> j) & 1U) << 2);
      }
    }
    const uint8_t* s = b + 96;
    for (int i = 0; i < 16; ++i) {
      const int below = i < 8 ? s[i] & 15 : s[i - 8] >> 4, above = (s[8 + i % 4] >> (2 * (i / 4))) & 3;
      d.sub[i] = static_cast<int8_t>((below | above << 4) - 32);
    }
    d.scale = half_at(b + 108);
  }
};

// Eight subscales and eight lows of six bits each in twelve bytes.
QKV_INLINE void decode_six_bits(const uint8_t* s, Decoded& d) {
  for (int i = 0; i < 4; ++i) {
    d.sub[i] = s[i] & 63;
    d.low[i] = s[4 + i] & 63;
    d.sub[4 + i] = static_cast<int8_t>((s[8 + i] & 15) | s[i] >> 6 << 4);
    d.low[4 + i] = static_cast<int8_t>(s[8 + i] >> 4 | s[4 + i] >> 6 << 4);
  }
}
// 32 bytes of two nibbles each are 64 elements.
QKV_INLINE void decode_long_halves(const uint8_t* from, uint8_t* u) {
  for (int j = 0; j < 4; ++j) {
    for (int l = 0; l < 32; ++l) {
      u[64 * j + l] = from[32 * j + l] & 15;
      u[64 * j + 32 + l] = from[32 * j + l] >> 4;
    }
  }
}

struct Q4K {
  static constexpr int kBytes = 144, kElements = 256, kPart = 32;
  static void decode(const uint8_t* b, Decoded& d) {
    d.scale = half_at(b);
    d.minimum = -half_at(b + 2);
    decode_six_bits(b + 4, d);
    decode_long_halves(b + 16, d.u);
  }
};
struct Q5K {
  static constexpr int kBytes = 176, kElements = 256, kPart = 32;
  static void decode(const uint8_t* b, Decoded& d) {
    d.scale = half_at(b);
    d.minimum = -half_at(b + 2);
    decode_six_bits(b + 4, d);
    decode_long_halves(b + 48, d.u);
    for (int j = 0; j < 8; ++j) {
      for (int l = 0; l < 32; ++l) {
        d.u[32 * j + l] = static_cast<uint8_t>(d.u[32 * j + l] | ((b[16 + l] >> j) & 1U) << 4);
      }
    }
  }
};
struct Q6K {
  static constexpr int kBytes = 210, kElements = 256, kPart = 16;
  static void decode(const uint8_t* b, Decoded& d) {
    decode_quarters(b + 128, d.u);  // the upper two bits
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 64; ++i) {
        uint8_t *below = d.u + 128 * h + i, *above = below + 64;
        *below = static_cast<uint8_t>(*below << 4 | (b[64 * h + i] & 15));
        *above = static_cast<uint8_t>(*above << 4 | b[64 * h + i] >> 4);
      }
    }
    for (int i = 0; i < 16; ++i) d.sub[i] = static_cast<int8_t>(b[192 + i]);
    d.scale = half_at(b + 208);
  }
};

template <class Q>
void unpack(const UnpackCall& c) noexcept {
  const IntShape shape = c.shape;
  char* bytes = static_cast<char*>(c.panel);
  auto* scales = reinterpret_cast<float*>(bytes + kPanel * shape.inner);
  float* minima = scales + kPanel * shape.blocks();
  auto* lows = reinterpret_cast<int16_t*>(shape.minima ? minima + kPanel * shape.blocks() : minima);
  auto* subs = reinterpret_cast<int8_t*>(lows + kPanel * shape.parts());
  constexpr int kSubs = Q::kElements / Q::kPart;
  Decoded d = {};
  for (int64_t row = 0; row < kPanel; ++row) {
    for (int64_t block = 0; block < shape.blocks(); ++block) {
      if (row < c.rows) {
        Q::decode(c.w + row * c.row_bytes + block * Q::kBytes, d);
      } else {
        d = {};
      }
      for (int i = 0; i < Q::kElements; i += 4) {
        __builtin_memcpy(bytes + (block * Q::kElements + i) * kPanel + 4 * row, d.u + i, 4);
      }
      scales[block * kPanel + row] = d.scale;
      if (shape.minima) minima[block * kPanel + row] = d.minimum;
      for (int j = 0; j < kSubs && shape.subscales; ++j) {
        const int64_t part = block * kSubs + j;
        subs[part * kPanel + row] = d.sub[j];
        lows[part / 2 * 2 * kPanel + 2 * row + part % 2] = shape.minima ? d.low[j] : d.sub[j];
      }
    }
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu

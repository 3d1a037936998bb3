// Quantised blocks of weights with shared scales, in the layout of GGUF files. Used by readers and kernels.
//
//   q8_0              x = d q                               32 to a block
//   q4_0 q5_0         x = d (q - 8),  d (q - 16)
//   q4_1 q5_1         x = d q + m
//   q2_k q4_k q5_k    x = (d s) q - (dmin m)                256 to a block, s and m per 16 (q2_k) or 32
//   q3_k q6_k         x = (d s) (q - 4),  (d s) (q - 32)    256 to a block, s per 16
//   mxfp4             x = 2^(e - 127) f                     32 to a block, f = +- 0, 0.5, 1, 1.5, 2, 3, 4, 6
//
// A 4-bit quant of the 32-element blocks: element i < 16 is the low half of byte i, element i >= 16 the high half of
// byte i - 16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/half.h"

namespace qkv {

// The last two are not GGUF but our own: core/panels.h.
enum class Block : uint8_t { none, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, mxfp4, q8, q4 };

const char* name_of(Block block);  // "q8_0"; "plain" for none
int64_t elements_of(Block block);  // in one block; 1 for none, for q8 and q4 the smallest group
int64_t bytes_of(Block block);     // of one block; 0 for none, q8 and q4

struct BlockQ8_0 {
  static constexpr int kElements = 32;
  F16 d;
  int8_t q[32];
};

struct BlockQ4_0 {
  static constexpr int kElements = 32;
  F16 d;
  uint8_t q[16];
};

struct BlockQ4_1 {
  static constexpr int kElements = 32;
  F16 d, m;
  uint8_t q[16];
};

struct BlockQ5_0 {
  static constexpr int kElements = 32;
  F16 d;
  uint8_t high[4];  // little endian; bit i is the fifth bit of element i
  uint8_t q[16];
};

struct BlockQ5_1 {
  static constexpr int kElements = 32;
  F16 d, m;
  uint8_t high[4];
  uint8_t q[16];
};

struct BlockQ2K {
  static constexpr int kElements = 256;
  uint8_t scales[16];  // scale in the low half, minimum in the high half
  uint8_t q[64];       // 128 elements to 32 bytes: byte l has the elements l, l + 32, l + 64, l + 96, lowest bits first
  F16 d, dmin;
};

struct BlockQ3K {
  static constexpr int kElements = 256;
  uint8_t high[32];    // bit g of byte l is the third bit of element 32 g + l
  uint8_t q[64];       // as in q2_k
  uint8_t scales[12];  // 16 of 6 bits, see q3_k_scale
  F16 d;
};

struct BlockQ4K {
  static constexpr int kElements = 256;
  F16 d, dmin;
  uint8_t scales[12];  // 8 scales and 8 minima of 6 bits, see q4_k_scale
  uint8_t q[128];      // 64 elements to 32 bytes: byte l has the elements l (low half) and l + 32
};

struct BlockQ5K {
  static constexpr int kElements = 256;
  F16 d, dmin;
  uint8_t scales[12];  // as in q4_k
  uint8_t high[32];    // bit g of byte l is the fifth bit of element 32 g + l
  uint8_t q[128];      // as in q4_k
};

struct BlockQ6K {
  static constexpr int kElements = 256;
  uint8_t q[128];    // 128 elements to 64 bytes: byte l has the elements l (low half) and l + 64
  uint8_t high[64];  // 128 elements to 32 bytes: byte l has two bits of l, l + 32, l + 64, l + 96, lowest first
  int8_t scales[16];
  F16 d;
};

struct BlockMxfp4 {
  static constexpr int kElements = 32;
  uint8_t e;  // 255 is NaN
  uint8_t q[16];
};

static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24 && sizeof(BlockMxfp4) == 17);
static_assert(sizeof(BlockQ2K) == 84 && sizeof(BlockQ3K) == 110 && sizeof(BlockQ4K) == 144);
static_assert(sizeof(BlockQ5K) == 176 && sizeof(BlockQ6K) == 210);

// The scale of elements [16 group, 16 group + 16): -32 to 31.
inline int q3_k_scale(const uint8_t* scales, int group) {
  const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
  const int high = (scales[8 + group % 4] >> (2 * (group / 4))) & 3;
  return (low | (high << 4)) - 32;
}

struct ScaleAndMin {
  int scale, min;  // 0 to 63
};

// Those of elements [32 group, 32 group + 32) in q4_k and q5_k.
inline ScaleAndMin q4_k_scale(const uint8_t* scales, int group) {
  if (group < 4) return {scales[group] & 63, scales[group + 4] & 63};
  return {(scales[group + 4] & 15) | ((scales[group - 4] >> 6) << 4),
          (scales[group + 4] >> 4) | ((scales[group] >> 6) << 4)};
}

// The 16 values of a 4-bit float (e2m1), and 2^(e - 127): NaN for 255.
inline constexpr float kFp4[16] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
inline float e8m0_to_float(uint8_t e) {
  if (e == 0) return 0x1p-127F;
  if (e == 255) return std::bit_cast<float>(0x7fc00000U);
  return std::bit_cast<float>(static_cast<uint32_t>(e) << 23);
}

// The elements of one block, in order, rounded as llama.cpp rounds them.
void decode_block(const BlockQ8_0& in, float* out);
void decode_block(const BlockQ4_0& in, float* out);
void decode_block(const BlockQ4_1& in, float* out);
void decode_block(const BlockQ5_0& in, float* out);
void decode_block(const BlockQ5_1& in, float* out);
void decode_block(const BlockQ2K& in, float* out);
void decode_block(const BlockQ3K& in, float* out);
void decode_block(const BlockQ4K& in, float* out);
void decode_block(const BlockQ5K& in, float* out);
void decode_block(const BlockQ6K& in, float* out);
void decode_block(const BlockMxfp4& in, float* out);

// Whole blocks at any address; an Error unless the sizes fit each other.
void decode_blocks(Block block, std::span<const std::byte> in, std::span<float> out);

// d = max |x| / 127, q = x / d rounded with ties away from zero. An Error if a value is not finite or d overflows F16.
void encode_q8_0(std::span<const float> in, std::span<std::byte> out);

}  // namespace qkv

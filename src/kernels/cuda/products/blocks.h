// Weights in blocks: q8 and q4 panels (core/panels.h) and GGUF's blocks (base/blocks.h), decoded number by number.
#pragma once

#include "core/panels.h"
#include "kernels/cuda/access.h"

namespace qkv::kernels::cuda {

__device__ inline float half_float(F16 x) {
  return __half2float(__ushort_as_half(x.bits));
}

// Element i of a block, rounded as base/blocks.cpp rounds it.
__device__ inline float decode(const BlockQ8_0& b, int i) {
  return static_cast<float>(b.q[i]) * half_float(b.d);
}
__device__ inline int nibble(const uint8_t* q, int i) {
  return i < 16 ? q[i] & 15 : q[i - 16] >> 4;
}
__device__ inline int fifth_bit(const uint8_t* high, int i) {
  return ((high[i / 8] >> (i % 8)) & 1) << 4;
}
__device__ inline int two_bits(const uint8_t* q, int i) {
  return (q[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32))) & 3;
}
__device__ inline int four_bits(const uint8_t* q, int i) {
  return (q[i / 64 * 32 + i % 32] >> (4 * (i % 64 / 32))) & 15;
}
__device__ inline float decode(const BlockQ4_0& b, int i) {
  return static_cast<float>(nibble(b.q, i) - 8) * half_float(b.d);
}
__device__ inline float decode(const BlockQ4_1& b, int i) {
  return static_cast<float>(nibble(b.q, i)) * half_float(b.d) + half_float(b.m);
}
__device__ inline float decode(const BlockQ5_0& b, int i) {
  return static_cast<float>((nibble(b.q, i) | fifth_bit(b.high, i)) - 16) * half_float(b.d);
}
__device__ inline float decode(const BlockQ5_1& b, int i) {
  return static_cast<float>(nibble(b.q, i) | fifth_bit(b.high, i)) * half_float(b.d) + half_float(b.m);
}
__device__ inline float decode(const BlockQ2K& b, int i) {
  const uint8_t s = b.scales[i / 16];
  return half_float(b.d) * static_cast<float>(s & 15) * static_cast<float>(two_bits(b.q, i)) -
         half_float(b.dmin) * static_cast<float>(s >> 4);
}
__device__ inline float decode(const BlockQ3K& b, int i) {
  const int group = i / 16, low = group < 8 ? b.scales[group] & 15 : b.scales[group - 8] >> 4;
  const int scale = (low | (((b.scales[8 + group % 4] >> (2 * (group / 4))) & 3) << 4)) - 32;
  const int high = (b.high[i % 32] >> (i / 32)) & 1;
  return half_float(b.d) * static_cast<float>(scale) * static_cast<float>((two_bits(b.q, i) | (high << 2)) - 4);
}
struct PartScale {
  float scale, min;
};
__device__ inline PartScale part_scale(const uint8_t* s, int g) {
  if (g < 4) return {static_cast<float>(s[g] & 63), static_cast<float>(s[g + 4] & 63)};
  return {static_cast<float>((s[g + 4] & 15) | ((s[g - 4] >> 6) << 4)),
          static_cast<float>((s[g + 4] >> 4) | ((s[g] >> 6) << 4))};
}
__device__ inline float decode(const BlockQ4K& b, int i) {
  const PartScale s = part_scale(b.scales, i / 32);
  return half_float(b.d) * s.scale * static_cast<float>(four_bits(b.q, i)) - half_float(b.dmin) * s.min;
}
__device__ inline float decode(const BlockQ5K& b, int i) {
  const PartScale s = part_scale(b.scales, i / 32);
  const int high = (b.high[i % 32] >> (i / 32)) & 1;
  return half_float(b.d) * s.scale * static_cast<float>(four_bits(b.q, i) | (high << 4)) - half_float(b.dmin) * s.min;
}
__device__ inline float decode(const BlockQ6K& b, int i) {
  const int low = (b.q[i / 128 * 64 + i % 64] >> (4 * (i % 128 / 64))) & 15;
  return half_float(b.d) * static_cast<float>(b.scales[i / 16]) *
         static_cast<float>((low | (two_bits(b.high, i) << 4)) - 32);
}
__device__ inline float decode(const BlockMxfp4& b, int i) {
  const int q = nibble(b.q, i), bits = q & 7;
  const float magnitude = bits < 4    ? 0.5F * static_cast<float>(bits)
                          : bits == 4 ? 2
                          : bits == 5 ? 3
                          : bits == 6 ? 4
                                      : 6;
  const float scale =
      b.e == 0 ? 0x1p-127F : __uint_as_float(b.e == 255 ? 0x7fc00000U : static_cast<uint32_t>(b.e) << 23);
  return (q < 8 ? magnitude : -magnitude) * scale;
}

// A matrix of any format, row by row. Blocks lie at any address, so they are copied before they are read.
struct Blocks {
  View plain;
  Block block = Block::none;
  const std::byte* data = nullptr;
  int64_t width = 0, matrix_rows = 1, group = 0, panel_bytes = 0;

  explicit Blocks(const Tensor& t) : plain(t), block(t.format().block), data(t.data()), width(t.cols()) {
    if (t.rank() >= 2) matrix_rows = t.dim(-2);
    group = t.format().group > 0 ? t.format().group : width;
    if (t.format().panels()) panel_bytes = PanelLayout(t.format(), width).bytes();
  }

  template <class R>
  __device__ R get(int64_t row, int64_t column) const {
    if (block == Block::none) return plain.get<R>(plain.row(row) + column);
    return static_cast<R>(decoded(row, column));
  }

 private:
  template <class B>
  __device__ float in_block(int64_t row, int64_t column) const {
    const std::byte* from = data + (row * (width / B::kElements) + column / B::kElements) * int64_t{sizeof(B)};
    B copy;
    auto* to = reinterpret_cast<std::byte*>(&copy);
    for (size_t i = 0; i < sizeof(B); ++i) to[i] = from[i];
    return decode(copy, static_cast<int>(column % B::kElements));
  }
  __device__ float in_panel(int64_t row, int64_t k) const {
    const bool nibbles = block == Block::q4;
    const int64_t each = (matrix_rows + kPanelRows - 1) / kPanelRows, in_matrix = row % matrix_rows;
    const std::byte* panel = data + (row / matrix_rows * each + in_matrix / kPanelRows) * panel_bytes;
    const int64_t lane = in_matrix % kPanelRows, g = k / group, in_group = k % group, columns = nibbles ? 8 : 4;
    const int64_t group_bytes = nibbles ? 8 * group : 16 * group;
    const int64_t scales = g / 2 * (kPanelLine + 2 * group_bytes);
    const auto scale = *reinterpret_cast<const __nv_bfloat16*>(panel + scales + 4 * lane + 2 * (g % 2));
    const int64_t at = scales + kPanelLine + g % 2 * group_bytes + in_group / columns * kPanelLine + 4 * lane + k % 4;
    const auto byte = static_cast<unsigned>(panel[at]);
    const int q = !nibbles ? static_cast<int>(byte) - 128 : static_cast<int>(k % 8 >= 4 ? byte >> 4 : byte & 15U) - 8;
    return static_cast<float>(q) * __bfloat162float(scale);
  }
  __device__ float decoded(int64_t row, int64_t column) const {
    switch (block) {
      case Block::none:
        return 0;
      case Block::q8:
      case Block::q4:
        return in_panel(row, column);
      case Block::q8_0:
        return in_block<BlockQ8_0>(row, column);
      case Block::q4_0:
        return in_block<BlockQ4_0>(row, column);
      case Block::q4_1:
        return in_block<BlockQ4_1>(row, column);
      case Block::q5_0:
        return in_block<BlockQ5_0>(row, column);
      case Block::q5_1:
        return in_block<BlockQ5_1>(row, column);
      case Block::q2_k:
        return in_block<BlockQ2K>(row, column);
      case Block::q3_k:
        return in_block<BlockQ3K>(row, column);
      case Block::q4_k:
        return in_block<BlockQ4K>(row, column);
      case Block::q5_k:
        return in_block<BlockQ5K>(row, column);
      case Block::q6_k:
        return in_block<BlockQ6K>(row, column);
      case Block::mxfp4:
        return in_block<BlockMxfp4>(row, column);
    }
    return 0;
  }
};

// Where the sums of a product with weights in blocks go: rounded there, before the activation.
inline const Tensor& sums_of(const LinearArgs& a) {
  return a.epilogue.pre.defined() ? a.epilogue.pre : a.y;
}
// x w^T + b, + residual, of products of one x, where w is in blocks and x is rounded to int8. In double for other dtypes
// than f32 and bf16.
void product_blocks(const Exec& exec, std::span<const LinearArgs> all);
void product_blocks_in_double(const Exec& exec, const LinearArgs& a, const Tensor& y);

}  // namespace qkv::kernels::cuda

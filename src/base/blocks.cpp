#include "base/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace qkv {
namespace {

struct Row {
  const char* name;
  int64_t elements, bytes;
};

template <class B>
constexpr Row row(const char* name) {
  return {name, B::kElements, sizeof(B)};
}

// In the order of enum Block.
constexpr std::array<Row, 14> kRows{{{"plain", 1, 0},
                                     row<BlockQ8_0>("q8_0"),
                                     row<BlockQ4_0>("q4_0"),
                                     row<BlockQ4_1>("q4_1"),
                                     row<BlockQ5_0>("q5_0"),
                                     row<BlockQ5_1>("q5_1"),
                                     row<BlockQ2K>("q2_k"),
                                     row<BlockQ3K>("q3_k"),
                                     row<BlockQ4K>("q4_k"),
                                     row<BlockQ5K>("q5_k"),
                                     row<BlockQ6K>("q6_k"),
                                     row<BlockMxfp4>("mxfp4"),
                                     {"q8", 32, 0},
                                     {"q4", 32, 0}}};

const Row& row_of(Block block) {
  return kRows[static_cast<size_t>(block)];
}

float as_float(int q) {
  return static_cast<float>(q);
}

// The fifth bit of element i, as 0 or 16.
int fifth_bit(const uint8_t* high, int i) {
  return ((high[i / 8] >> (i % 8)) & 1) << 4;
}

// The two bits of element i of a q2_k or q3_k block.
int two_bits(const uint8_t* q, int i) {
  return (q[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32))) & 3;
}

// The four low bits of element i of a q4_k or q5_k block.
int four_bits(const uint8_t* q, int i) {
  return (q[i / 64 * 32 + i % 32] >> (4 * (i % 64 / 32))) & 15;
}

template <class B>
void decode_all(std::span<const std::byte> in, float* out) {
  for (size_t at = 0; at < in.size(); at += sizeof(B), out += B::kElements) {
    B block;
    std::memcpy(&block, in.data() + at, sizeof(B));
    decode_block(block, out);
  }
}

void check_sizes(Block block, size_t bytes, size_t elements) {
  const auto per = static_cast<size_t>(elements_of(block)), size = static_cast<size_t>(bytes_of(block));
  QKV_CHECK(elements % per == 0, name_of(block), " holds blocks of ", per, " elements but there are ", elements,
            Hint("use a width that is a multiple of the block"));
  QKV_CHECK(bytes % size == 0 && bytes / size == elements / per, elements, " elements of ", name_of(block), " take ",
            elements / per, " blocks of ", size, " bytes but there are ", bytes, " bytes",
            Hint("the shape and the bytes belong to different tensors"));
}

}  // namespace

const char* name_of(Block block) {
  return row_of(block).name;
}

int64_t elements_of(Block block) {
  return row_of(block).elements;
}

int64_t bytes_of(Block block) {
  return row_of(block).bytes;
}

void decode_block(const BlockQ8_0& in, float* out) {
  const float d = to_float(in.d);
  for (int i = 0; i < 32; ++i) out[i] = as_float(in.q[i]) * d;
}

void decode_block(const BlockQ4_0& in, float* out) {
  const float d = to_float(in.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = as_float((in.q[i] & 15) - 8) * d;
    out[i + 16] = as_float((in.q[i] >> 4) - 8) * d;
  }
}

void decode_block(const BlockQ4_1& in, float* out) {
  const float d = to_float(in.d), m = to_float(in.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = as_float(in.q[i] & 15) * d + m;
    out[i + 16] = as_float(in.q[i] >> 4) * d + m;
  }
}

void decode_block(const BlockQ5_0& in, float* out) {
  const float d = to_float(in.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = as_float(((in.q[i] & 15) | fifth_bit(in.high, i)) - 16) * d;
    out[i + 16] = as_float(((in.q[i] >> 4) | fifth_bit(in.high, i + 16)) - 16) * d;
  }
}

void decode_block(const BlockQ5_1& in, float* out) {
  const float d = to_float(in.d), m = to_float(in.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = as_float((in.q[i] & 15) | fifth_bit(in.high, i)) * d + m;
    out[i + 16] = as_float((in.q[i] >> 4) | fifth_bit(in.high, i + 16)) * d + m;
  }
}

void decode_block(const BlockQ2K& in, float* out) {
  const float d = to_float(in.d), dmin = to_float(in.dmin);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * as_float(in.scales[group] & 15), min = dmin * as_float(in.scales[group] >> 4);
    for (int i = 16 * group; i < 16 * group + 16; ++i) out[i] = scale * as_float(two_bits(in.q, i)) - min;
  }
}

void decode_block(const BlockQ3K& in, float* out) {
  const float d = to_float(in.d);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * as_float(q3_k_scale(in.scales, group));
    for (int i = 16 * group; i < 16 * group + 16; ++i) {
      const int high = (in.high[i % 32] >> (i / 32)) & 1;
      out[i] = scale * as_float((two_bits(in.q, i) | (high << 2)) - 4);
    }
  }
}

void decode_block(const BlockQ4K& in, float* out) {
  const float d = to_float(in.d), dmin = to_float(in.dmin);
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMin s = q4_k_scale(in.scales, group);
    const float scale = d * as_float(s.scale), min = dmin * as_float(s.min);
    for (int i = 32 * group; i < 32 * group + 32; ++i) out[i] = scale * as_float(four_bits(in.q, i)) - min;
  }
}

void decode_block(const BlockQ5K& in, float* out) {
  const float d = to_float(in.d), dmin = to_float(in.dmin);
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMin s = q4_k_scale(in.scales, group);
    const float scale = d * as_float(s.scale), min = dmin * as_float(s.min);
    for (int i = 32 * group; i < 32 * group + 32; ++i) {
      const int high = (in.high[i % 32] >> group) & 1;
      out[i] = scale * as_float(four_bits(in.q, i) | (high << 4)) - min;
    }
  }
}

void decode_block(const BlockQ6K& in, float* out) {
  const float d = to_float(in.d);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * as_float(in.scales[group]);
    for (int i = 16 * group; i < 16 * group + 16; ++i) {
      const int low = (in.q[i / 128 * 64 + i % 64] >> (4 * (i % 128 / 64))) & 15;
      out[i] = scale * as_float((low | (two_bits(in.high, i) << 4)) - 32);
    }
  }
}

void decode_block(const BlockMxfp4& in, float* out) {
  const float scale = e8m0_to_float(in.e);
  for (int i = 0; i < 16; ++i) {
    out[i] = kFp4[in.q[i] & 15] * scale;
    out[i + 16] = kFp4[in.q[i] >> 4] * scale;
  }
}

void decode_blocks(Block block, std::span<const std::byte> in, std::span<float> out) {
  QKV_ASSERT(bytes_of(block) > 0, "decode_blocks: ", name_of(block), " has no blocks of its own");
  check_sizes(block, in.size(), out.size());
  switch (block) {
    case Block::none:
    case Block::q8:
    case Block::q4:
      return;
    case Block::q8_0:
      return decode_all<BlockQ8_0>(in, out.data());
    case Block::q4_0:
      return decode_all<BlockQ4_0>(in, out.data());
    case Block::q4_1:
      return decode_all<BlockQ4_1>(in, out.data());
    case Block::q5_0:
      return decode_all<BlockQ5_0>(in, out.data());
    case Block::q5_1:
      return decode_all<BlockQ5_1>(in, out.data());
    case Block::q2_k:
      return decode_all<BlockQ2K>(in, out.data());
    case Block::q3_k:
      return decode_all<BlockQ3K>(in, out.data());
    case Block::q4_k:
      return decode_all<BlockQ4K>(in, out.data());
    case Block::q5_k:
      return decode_all<BlockQ5K>(in, out.data());
    case Block::q6_k:
      return decode_all<BlockQ6K>(in, out.data());
    case Block::mxfp4:
      return decode_all<BlockMxfp4>(in, out.data());
  }
}

void encode_q8_0(std::span<const float> in, std::span<std::byte> out) {
  check_sizes(Block::q8_0, out.size(), in.size());
  for (size_t at = 0; at < in.size(); at += BlockQ8_0::kElements) {
    const std::span<const float> x = in.subspan(at, BlockQ8_0::kElements);
    float largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      QKV_CHECK(std::isfinite(x[i]), "element ", at + i, " is ", x[i], " but q8_0 holds finite numbers only",
                Hint("the weights are broken, or write them as f32"));
      largest = std::max(largest, std::abs(x[i]));
    }
    const float d = largest / 127;
    const float inverse = d != 0 ? 1 / d : 0;  // llama.cpp rounds x * (1 / d), not x / d
    BlockQ8_0 block;
    block.d = to_f16(d);
    QKV_CHECK(std::isfinite(to_float(block.d)), "element ", at, " and its 31 neighbours reach ", largest,
              " but q8_0 holds at most ", 65504.0F * 127, Hint("write them as f32 or bf16"));
    for (size_t i = 0; i < x.size(); ++i) block.q[i] = static_cast<int8_t>(std::round(x[i] * inverse));
    std::memcpy(out.data() + at / BlockQ8_0::kElements * sizeof(block), &block, sizeof(block));
  }
}

}  // namespace qkv

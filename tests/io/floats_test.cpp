// Decoding stored weights, against llama.cpp's own decoding and the formulas of the 8-bit formats.
#include "io/floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/float8.h"
#include "io/files.h"
#include "io/gguf.h"
#include "io/safetensors.h"
#include "io/stored_type.h"
#include "support/pass.h"

namespace qkv {
namespace {

using test::numbers_of;

std::vector<float> floats_of(const StoredTensor& entry) {
  int64_t count = 1;
  for (const int64_t dim : entry.shape) count *= dim;
  std::vector<float> out(static_cast<size_t>(count));
  decode_floats(entry.dtype, entry.bytes, out);
  return out;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class LlamaCppFile : public testing::TestWithParam<const char*> {};

TEST_P(LlamaCppFile, DecodesToTheSameBits) {
  const std::string type = GetParam();
  QKV_NEED_SHARED(file, "gguf/tiny-" + type + ".gguf");
  QKV_NEED_SHARED(right_file, "gguf/tiny-" + type + ".safetensors");
  const Gguf gguf = Gguf::open(file);
  const Safetensors right = Safetensors::open(right_file);
  ASSERT_EQ(right.entries().size(), 3u);
  int of_this_type = 0;
  for (const StoredTensor& want : right.entries()) {
    const StoredTensor& stored = gguf.at(want.name);
    EXPECT_EQ(stored.shape, want.shape);
    EXPECT_TRUE(same_bits(floats_of(stored), numbers_of<float>(want.bytes))) << want.name << " " << stored.dtype;
    of_this_type += stored.dtype == type ? 1 : 0;
  }
  EXPECT_GE(of_this_type, 1);
}

INSTANTIATE_TEST_SUITE_P(Type, LlamaCppFile,
                         testing::Values("BF16", "F16", "Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K",
                                         "Q6_K", "Q8_0"),
                         [](const auto& param) { return std::string(param.param); });

// llama.cpp made these files from tiny-f32.gguf: our encoders must make the same of it.
class Encodes : public testing::TestWithParam<const char*> {};

TEST_P(Encodes, WhatLlamaCppEncodes) {
  const std::string type = GetParam();
  QKV_NEED_SHARED(source_file, "gguf/tiny-f32.gguf");
  QKV_NEED_SHARED(right_file, "gguf/tiny-" + type + ".gguf");
  const Gguf source = Gguf::open(source_file), right = Gguf::open(right_file);
  int compared = 0;
  for (const StoredTensor& want : right.entries()) {
    if (want.dtype != type) continue;
    std::vector<std::byte> got(want.bytes.size());
    encode_floats(type, floats_of(source.at(want.name)), got);
    EXPECT_TRUE(std::ranges::equal(got, want.bytes)) << want.name;
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

INSTANTIATE_TEST_SUITE_P(Type, Encodes, testing::Values("F16", "BF16", "Q8_0"),
                         [](const auto& param) { return std::string(param.param); });

// The value of a pattern by the formula of the OCP 8-bit formats.
double meaning_of(int bits, int exponent_bits, int mantissa_bits, int bias) {
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

TEST(Float8, EveryPatternOfE4M3MeansWhatOcpSays) {
  for (int bits = 0; bits < 256; ++bits) {
    const float got = to_float(F8E4M3{static_cast<uint8_t>(bits)});
    if ((bits & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(got), meaning_of(bits, 4, 3, 7)) << bits;
      EXPECT_EQ(std::signbit(got), bits >= 128) << bits;
    }
  }
  EXPECT_EQ(to_float(F8E4M3{0x7e}), 448);
}

TEST(Float8, EveryPatternOfE5M2MeansWhatOcpSays) {
  for (int bits = 0; bits < 256; ++bits) {
    const float got = to_float(F8E5M2{static_cast<uint8_t>(bits)});
    const int magnitude = bits & 0x7f;
    if (magnitude > 0x7c) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else if (magnitude == 0x7c) {
      EXPECT_TRUE(std::isinf(got)) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(got), meaning_of(bits, 5, 2, 15)) << bits;
    }
  }
}

// Tiles of 2 x 3: whole ones alone, and with partial ones at both edges.
TEST(TiledFloat8, ScalesEachTileEvenThePartialOnes) {
  struct Case {
    size_t rows, columns, across;
  };
  const std::vector<float> scales{0.5F, 2, 0.1F, -1, 3, 7, 11, 13, 17};
  for (const Case& c : {Case{5, 7, 3}, Case{6, 9, 3}, Case{4, 6, 2}, Case{1, 1, 1}}) {
    std::vector<std::byte> weight(c.rows * c.columns);
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<std::byte>(i * 7 % 120);
    for (const char* dtype : {"F8_E4M3", "F8_E5M2"}) {
      std::vector<float> out(weight.size()), plain(weight.size());
      decode_tiled_float8({.dtype = dtype,
                           .weight = weight,
                           .scale = std::span(scales).first((c.rows + 1) / 2 * c.across),
                           .rows = static_cast<int64_t>(c.rows),
                           .columns = static_cast<int64_t>(c.columns),
                           .tile_rows = 2,
                           .tile_columns = 3},
                          out);
      decode_floats(dtype, weight, plain);
      for (size_t i = 0; i < out.size(); ++i) {
        const size_t row = i / c.columns, column = i % c.columns;
        EXPECT_EQ(out[i], plain[i] * scales[row / 2 * c.across + column / 3]) << dtype << " " << row << " " << column;
      }
    }
  }
}

TEST(TiledFloat8, RefusesScalesThatDoNotFit) {
  std::vector<std::byte> weight(129 * 2);
  std::vector<float> out(weight.size()), scale(3);
  TiledFloat8 in{.dtype = "F8_E4M3", .weight = weight, .scale = scale, .rows = 129, .columns = 2};
  expect_error([&] { decode_tiled_float8(in, out); }, {"129 x 2", "128 x 128", "2 x 1", "has 3"});
  in.scale = std::span(scale).first(2);
  decode_tiled_float8(in, out);
  in.columns = 3;
  expect_error([&] { decode_tiled_float8(in, out); }, {"129 x 3", "258"});
  in.dtype = "U8";
  expect_error([&] { decode_tiled_float8(in, out); }, {"'U8'"});
}

TEST(Mxfp4Pairs, PutTheLowHalfFirst) {
  std::vector<std::byte> blocks(32), scales{std::byte{127}, std::byte{130}};
  blocks[0] = std::byte{0x72};   // 1, then 6
  blocks[31] = std::byte{0x9F};  // -6, then -0.5
  std::vector<float> out(64, -1);
  decode_mxfp4_pairs(blocks, scales, out);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 6);
  EXPECT_EQ(out[2], 0);
  EXPECT_EQ(out[62], -48);
  EXPECT_EQ(out[63], -4);
}

TEST(Mxfp4Pairs, RefuseSizesThatDoNotFit) {
  std::vector<std::byte> blocks(32), scales(2);
  std::vector<float> out(64);
  expect_error([&] { decode_mxfp4_pairs(blocks, std::span(scales).first(1), out); }, {"2 blocks", "1 scales"});
  expect_error([&] { decode_mxfp4_pairs(std::span(blocks).first(31), scales, out); }, {"31 bytes"});
  expect_error([&] { decode_mxfp4_pairs(blocks, scales, std::span(out).first(63)); }, {"64 elements", "63"});
}

TEST(Floats, AreRefusedWhereThereAreNone) {
  std::vector<std::byte> bytes(8);
  std::vector<float> out(1);
  expect_error([&] { decode_floats("I64", bytes, out); }, {"'I64' does not hold floats"});
  expect_error([&] { decode_floats("Q9_9", bytes, out); }, {"'Q9_9'"});
  expect_error([&] { decode_floats("F32", bytes, out); }, {"1 elements of F32 take 4 bytes each", "8 bytes"});
  expect_error([&] { encode_floats("Q4_0", out, bytes); }, {"'Q4_0'"});
  expect_error([&] { encode_floats("F16", out, bytes); }, {"F16", "8 bytes"});
}

TEST(Floats, OfSixtyFourBitsAreRounded) {
  const double pi = 3.14159265358979;
  std::vector<float> out(1);
  decode_floats("F64", std::as_bytes(std::span(&pi, 1)), out);
  EXPECT_EQ(out[0], 3.14159274F);
}

}  // namespace
}  // namespace qkv

// One block of each format against the formula, written out by hand; whole files are compared in tests/io.
#include "base/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/expect_error.h"
#include "base/philox.h"

namespace qkv {
namespace {

template <class B>
std::vector<float> decoded(const B& block) {
  std::vector<float> out(B::kElements);
  decode_block(block, out.data());
  return out;
}

TEST(Blocks, Q4_0HasItsLowHalvesFirst) {
  BlockQ4_0 block{.d = to_f16(0.5F)};
  for (int i = 0; i < 16; ++i) block.q[i] = static_cast<uint8_t>(i | ((15 - i) << 4));
  const std::vector<float> x = decoded(block);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(x[i], 0.5F * (static_cast<float>(i) - 8));
    EXPECT_EQ(x[i + 16], 0.5F * (7 - static_cast<float>(i)));
  }
}

TEST(Blocks, Q5_1TakesTheFifthBitOfEachElement) {
  BlockQ5_1 block{.d = to_f16(1), .m = to_f16(-2)};
  block.high[0] = 1;     // element 0
  block.high[3] = 0x80;  // element 31
  const std::vector<float> x = decoded(block);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(x[i], i == 0 || i == 31 ? 14 : -2) << i;
}

TEST(Blocks, ScalesOfSixBitsAreReadWhole) {
  // group: low 6 bits of byte group (scale) and group + 4 (minimum) up to 3; then halves of byte group + 4, with the
  // top two bits of bytes group - 4 and group.
  const uint8_t scales[12] = {0xFF, 0, 0, 0x2A, 0, 0, 0, 0x15, 0x1F, 0, 0, 0xF1};
  EXPECT_EQ(q4_k_scale(scales, 0).scale, 63);
  EXPECT_EQ(q4_k_scale(scales, 0).min, 0);
  EXPECT_EQ(q4_k_scale(scales, 3).scale, 42);
  EXPECT_EQ(q4_k_scale(scales, 3).min, 21);
  EXPECT_EQ(q4_k_scale(scales, 4).scale, 63);
  EXPECT_EQ(q4_k_scale(scales, 4).min, 1);
  EXPECT_EQ(q4_k_scale(scales, 7).scale, 1);
  EXPECT_EQ(q4_k_scale(scales, 7).min, 15);
  EXPECT_EQ(q3_k_scale(scales, 0), (15 | (3 << 4)) - 32);
  EXPECT_EQ(q3_k_scale(scales, 8), (15 | (1 << 4)) - 32);
  EXPECT_EQ(q3_k_scale(scales, 15), (1 | (3 << 4)) - 32);
}

TEST(Blocks, Mxfp4IsAFourBitFloatTimesAPowerOfTwo) {
  const float values[8] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (const int e : {0, 1, 2, 100, 127, 128, 250, 254}) {
    BlockMxfp4 block{.e = static_cast<uint8_t>(e)};
    for (int i = 0; i < 16; ++i) block.q[i] = static_cast<uint8_t>(i | ((15 - i) << 4));
    const std::vector<float> x = decoded(block);
    for (int i = 0; i < 16; ++i) {
      const float right = std::ldexp(values[i % 8] * (i < 8 ? 1.0F : -1.0F), e - 127);
      EXPECT_EQ(x[static_cast<size_t>(i)], right) << e << " " << i;
      EXPECT_EQ(x[static_cast<size_t>(31 - i)], right) << e << " " << i;
    }
  }
  for (const float x : decoded(BlockMxfp4{.e = 255})) EXPECT_TRUE(std::isnan(x));
}

TEST(Blocks, AreTakenAtAnyAddressAndOnlyWhole) {
  std::vector<std::byte> bytes(2 * 34 + 1);
  BlockQ8_0 block{.d = to_f16(2)};
  block.q[31] = -128;
  std::memcpy(bytes.data() + 1 + 34, &block, 34);
  std::vector<float> out(64);
  decode_blocks(Block::q8_0, std::span(bytes).subspan(1), out);
  EXPECT_EQ(out[63], -256);
  EXPECT_EQ(out[31], 0);
  expect_error([&] { decode_blocks(Block::q8_0, bytes, out); }, {"64 elements of q8_0", "2 blocks of 34", "69 bytes"});
  expect_error([&] { decode_blocks(Block::q8_0, std::span(bytes).first(34), out); }, {"34 bytes"});
  expect_error([&] { decode_blocks(Block::q4_k, bytes, out); }, {"q4_k", "blocks of 256", "64"});
}

TEST(EncodeQ8_0, IsWithinHalfAStepAndExactOnItsOwnValues) {
  const auto key = fold(RngKey{.seed = 5});
  std::vector<float> x(64), back(64);
  for (uint64_t i = 0; i < x.size(); ++i)
    x[i] = std::bit_cast<float>(0x3f800000U | (random_u32(key, i, 0) >> 9)) - 1.5F;
  std::vector<std::byte> bytes(68), again(68);
  encode_q8_0(x, bytes);
  decode_blocks(Block::q8_0, bytes, back);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], back[i], 0.5 / 254 * 1.01) << i;
  encode_q8_0(std::vector<float>(64), again);
  decode_blocks(Block::q8_0, again, back);
  for (const float zero : back) EXPECT_EQ(zero, 0);
}

TEST(EncodeQ8_0, RoundsTiesAwayFromZero) {
  std::vector<float> x(32);
  x[0] = 127;
  x[1] = 2.5F;
  x[2] = -2.5F;
  x[3] = 3.5F;
  BlockQ8_0 block;
  std::vector<std::byte> bytes(34);
  encode_q8_0(x, bytes);
  std::memcpy(&block, bytes.data(), 34);
  EXPECT_EQ(block.q[0], 127);
  EXPECT_EQ(block.q[1], 3);
  EXPECT_EQ(block.q[2], -3);
  EXPECT_EQ(block.q[3], 4);
}

TEST(EncodeQ8_0, RefusesWhatItCannotHold) {
  std::vector<std::byte> bytes(34);
  std::vector<float> x(32);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  expect_error([&] { encode_q8_0(x, bytes); }, {"element 7 is nan"});
  x[7] = -std::numeric_limits<float>::infinity();
  expect_error([&] { encode_q8_0(x, bytes); }, {"element 7 is -inf"});
  x[7] = 1e30F;
  expect_error([&] { encode_q8_0(x, bytes); }, {"reach 1e+30"});
  expect_error([&] { encode_q8_0(std::span(x).first(31), bytes); }, {"31"});
}

}  // namespace
}  // namespace qkv

#include "core/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "core/says.h"
#include "core/shape.h"

namespace qkv::test {
namespace {

TEST(DType, SizesAndNames) {
  EXPECT_EQ(size_of(DType::f64), 8);
  EXPECT_EQ(size_of(DType::f32), 4);
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(size_of(DType::f16), 2);
  EXPECT_EQ(size_of(DType::i8), 1);
  EXPECT_EQ(size_of(DType::i32), 4);
  EXPECT_EQ(size_of(DType::i64), 8);
  EXPECT_STREQ(name_of(DType::bf16), "bf16");
  EXPECT_TRUE(is_float(DType::f16));
  EXPECT_FALSE(is_float(DType::i8));
}

TEST(DType, TheUnitRoundoffIsHalfTheGapAboveOne) {
  EXPECT_EQ(unit_roundoff(DType::f64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::f32), static_cast<double>(std::numeric_limits<float>::epsilon()) / 2);
  EXPECT_EQ(unit_roundoff(DType::bf16), static_cast<double>(to_float(Bf16{0x3f81}) - 1) / 2);
  EXPECT_EQ(unit_roundoff(DType::f16), static_cast<double>(to_float(F16{0x3c01}) - 1) / 2);
  EXPECT_EQ(unit_roundoff(DType::i32), 0);
}

// ggml-common.h: a block_q4_K is 2 halves, 12 bytes of scales and 128 of quants, and so on.
TEST(Format, GgufBlocksOf256ElementsTakeTheBytesGgmlSays) {
  const std::pair<Block, int64_t> sizes[] = {
      {Block::q8_0, 8 * (2 + 32)},
      {Block::q4_0, 8 * (2 + 16)},
      {Block::q4_1, 8 * (2 + 2 + 16)},
      {Block::q5_0, 8 * (2 + 4 + 16)},
      {Block::q5_1, 8 * (2 + 2 + 4 + 16)},
      {Block::q2_k, 256 / 16 + 256 / 4 + 2 + 2},
      {Block::q3_k, 256 / 8 + 256 / 4 + 12 + 2},
      {Block::q4_k, 2 + 2 + 12 + 256 / 2},
      {Block::q5_k, 2 + 2 + 12 + 256 / 8 + 256 / 2},
      {Block::q6_k, 256 / 2 + 256 / 4 + 256 / 16 + 2},
      {Block::mxfp4, 8 * (1 + 16)},
  };
  for (const auto& [block, bytes] : sizes) EXPECT_EQ(Format(block).bytes_for(256), bytes) << Format(block);
}

TEST(Format, PlainTypesTakeTheirSizePerElement) {
  EXPECT_EQ(Format(DType::f32).bytes_for(3), 12);
  EXPECT_EQ(Format(DType::bf16).bytes_for(3), 6);
  EXPECT_EQ(Format(DType::f64).bytes_for(0), 0);
}

TEST(Format, RefusesPartsOfABlock) {
  expect_error([] { std::ignore = Format(Block::q8_0).bytes_for(33); }, {"q8_0", "32", "33"});
  expect_error([] { std::ignore = Format(Block::q8_0).bytes_for(Shape{2, 48}); }, {"q8_0", "32", "48"});
  expect_error([] { std::ignore = Format(Block::q4_k).bytes_for(128); }, {"q4_k", "256", "128"});
}

TEST(Format, RefusesByteCountsThatDoNotFit) {
  expect_error([] { std::ignore = Format(DType::f64).bytes_for(int64_t{1} << 61); }, {"f64", "2305843009213693952"});
  expect_error(
      [] {
        std::ignore = Format(Block::q8, 32).bytes_for(Shape{(int64_t{1} << 58) - 1, 32});
      },
      {"q8/32", "64-bit"});
}

TEST(Format, PrintsAsItsName) {
  std::ostringstream out;
  out << Format(DType::bf16) << ' ' << Format(Block::q6_k) << ' ' << DType::i64;
  EXPECT_EQ(out.str(), "bf16 q6_k i64");
}

}  // namespace
}  // namespace qkv::test

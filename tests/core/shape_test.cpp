#include "core/shape.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "core/says.h"

namespace qkv::test {
namespace {

std::string text_of(const Shape& shape) {
  std::ostringstream out;
  out << shape;
  return out.str();
}

TEST(Shape, CountsTheElements) {
  EXPECT_EQ(Shape({2, 3, 4}).count(), 24);
  EXPECT_EQ(Shape({7}).count(), 7);
  EXPECT_EQ(Shape().count(), 1);
  EXPECT_EQ(Shape({3, 0, 5}).count(), 0);
}

TEST(Shape, HoldsFiveDimensionsAndNotSix) {
  EXPECT_EQ(Shape({1, 2, 3, 4, 5}).rank(), 5);
  expect_error([] { Shape{1, 2, 3, 4, 5, 6}; }, {"5", "6"});
}

TEST(Shape, RefusesNegativeDimensions) {
  expect_error([] { Shape{2, -3}; }, {"-3", "[2, -3]"});
}

TEST(Shape, RefusesAProductThatDoesNotFitIn64Bits) {
  EXPECT_EQ(Shape({int64_t{1} << 31, int64_t{1} << 31}).count(), int64_t{1} << 62);
  expect_error([] { Shape{int64_t{1} << 32, int64_t{1} << 31}; }, {"[4294967296, 2147483648]", "64 bits"});
  expect_error([] { Shape{int64_t{1} << 21, int64_t{1} << 21, int64_t{1} << 21}; }, {"64 bits"});
}

TEST(Shape, TreatsAnOverflowAlikeWhereverAZeroStands) {
  const int64_t big = int64_t{1} << 40;
  const bool zero_first = error_of([&] { Shape{0, big, big}; }).has_value();
  const bool zero_last = error_of([&] { Shape{big, big, 0}; }).has_value();
  EXPECT_EQ(zero_first, zero_last);
}

TEST(Shape, CountsNegativeAxesFromTheEnd) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[2], 4);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[-3], 2);
}

TEST(Shape, RefusesAxesThatDoNotExist) {
  expect_error([] { std::ignore = Shape({2, 3})[2]; }, {"axis 2", "[2, 3]"});
  expect_error([] { std::ignore = Shape({2, 3})[-3]; }, {"axis -3", "[2, 3]"});
  expect_error([] { std::ignore = Shape()[0]; }, {"axis 0", "[]"});
}

TEST(Shape, ReplacesOneDimension) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.with(1, 7), Shape({2, 7, 4}));
  EXPECT_EQ(shape.with(-1, 0), Shape({2, 3, 0}));
  EXPECT_EQ(shape, Shape({2, 3, 4}));
  expect_error([&] { std::ignore = shape.with(0, -1); }, {"-1"});
  expect_error([&] { std::ignore = shape.with(3, 1); }, {"axis 3"});
}

TEST(Shape, IsEqualOnlyWithTheSameRankAndSizes) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
  EXPECT_NE(Shape(), Shape({1}));
}

TEST(Shape, PrintsItsSizes) {
  EXPECT_EQ(text_of({2, 3, 4}), "[2, 3, 4]");
  EXPECT_EQ(text_of({5}), "[5]");
  EXPECT_EQ(text_of({}), "[]");
}

TEST(Shape, IsMadeFromASpan) {
  const std::vector<int64_t> dims{4, 5};
  EXPECT_EQ(Shape(std::span<const int64_t>(dims)), Shape({4, 5}));
}

}  // namespace
}  // namespace qkv::test

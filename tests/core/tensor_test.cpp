#include "core/tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <sstream>

#include "core/says.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

// 0, 1, 2, ... in a tensor of this shape.
class TensorViews : public ::testing::Test {
 protected:
  Tensor counting(const Shape& shape) {
    Numbers values(static_cast<size_t>(shape.count()));
    std::iota(values.begin(), values.end(), 0.0);
    return pass_.input(values, shape);
  }

 private:
  Pass pass_;
};

TEST_F(TensorViews, StartContiguous) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(t.stride(0), 12);
  EXPECT_EQ(t.stride(1), 4);
  EXPECT_EQ(t.stride(2), 1);
  EXPECT_EQ(t.stride(-1), 1);
  EXPECT_EQ(t.rows(), 6);
  EXPECT_EQ(t.cols(), 4);
  EXPECT_TRUE(t.contiguous());
}

TEST_F(TensorViews, ViewKeepsOrderAndBytes) {
  const Tensor t = counting({2, 6});
  const Tensor v = t.view({3, 2, 2});
  EXPECT_EQ(v.data(), t.data());
  EXPECT_EQ(v.shape(), Shape({3, 2, 2}));
  EXPECT_EQ(to_host(v.slice(0, 1, 1)), Numbers({4, 5, 6, 7}));
  expect_says([&] { std::ignore = t.view({5}); }, {"view", "f32 [2, 6]", "12", "[5]", "5"});
  expect_error([&] { std::ignore = t.slice(1, 0, 3).view({6}); }, {"view", "[2, 3]", "not contiguous", "[6]"});
}

TEST_F(TensorViews, SliceTakesAPartOfOneAxis) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(to_host(t.slice(1, 1, 2)), Numbers({4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(to_host(t.slice(-1, 3, 1)), Numbers({3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(to_host(t.slice(0, 1, 1).slice(2, 1, 2)), Numbers({13, 14, 17, 18, 21, 22}));
  EXPECT_FALSE(t.slice(1, 1, 2).contiguous());
  EXPECT_TRUE(t.slice(1, 1, 2).rows_contiguous());
  EXPECT_TRUE(t.slice(0, 1, 1).contiguous());
  EXPECT_EQ(t.slice(0, 2, 0).count(), 0);
}

TEST_F(TensorViews, SliceStaysInside) {
  const Tensor t = counting({2, 3});
  expect_says([&] { std::ignore = t.slice(1, 2, 2); }, {"slice", "axis 1", "f32 [2, 3]"});
  expect_says([&] { std::ignore = t.slice(1, -1, 2); }, {"slice", "-1", "axis 1"});
  expect_says([&] { std::ignore = t.slice(0, 0, -1); }, {"slice", "-1", "axis 0"});
  expect_says([&] { std::ignore = t.slice(2, 0, 1); }, {"axis 2", "[2, 3]"});
  expect_says([&] { std::ignore = t.slice(0, std::numeric_limits<int64_t>::max(), 2); }, {"slice", "f32 [2, 3]"});
}

TEST_F(TensorViews, SplitAndMergeOfTheLastAxisAreInverse) {
  const Tensor t = counting({2, 6});
  const Tensor split = t.split_last(3, 2);
  EXPECT_EQ(split.shape(), Shape({2, 3, 2}));
  EXPECT_EQ(to_host(split.slice(1, 2, 1)), Numbers({4, 5, 10, 11}));
  EXPECT_EQ(split.merge_last().shape(), Shape({2, 6}));
  EXPECT_EQ(to_host(split.merge_last()), to_host(t));
}

TEST_F(TensorViews, SplitWorksInsideAStridedRow) {
  const Tensor t = counting({2, 8}).slice(1, 2, 4).split_last(2, 2);
  EXPECT_EQ(t.stride(0), 8);
  EXPECT_EQ(to_host(t.slice(1, 1, 1)), Numbers({4, 5, 12, 13}));
  EXPECT_EQ(to_host(t.merge_last()), Numbers({2, 3, 4, 5, 10, 11, 12, 13}));
}

TEST_F(TensorViews, SplitAndMergeRefuseWhatDoesNotFit) {
  const Tensor t = counting({2, 6});
  expect_says([&] { std::ignore = t.split_last(4, 2); }, {"split_last", "f32 [2, 6]", "4 x 2"});
  expect_says([&] { std::ignore = counting({1, 1, 1, 1, 6}).split_last(2, 3); }, {"split_last"});
  expect_says([&] { std::ignore = t.slice(1, 0, 3).merge_last(); }, {"merge_last", "f32 [2, 3]"});
  expect_says([&] { std::ignore = counting({6}).merge_last(); }, {"merge_last", "f32 [6]"});
}

TEST_F(TensorViews, FlattenJoinsLeadingAxes) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(t.flatten_to(2).shape(), Shape({6, 4}));
  EXPECT_EQ(t.flatten_to(1).shape(), Shape({24}));
  EXPECT_EQ(t.flatten_to(3).shape(), t.shape());
  const Tensor columns = t.slice(2, 1, 2).flatten_to(2);  // rows may have gaps between them
  EXPECT_EQ(columns.shape(), Shape({6, 2}));
  EXPECT_EQ(columns.stride(0), 4);
  EXPECT_EQ(to_host(columns.slice(0, 4, 1)), Numbers({17, 18}));
  expect_error([&] { std::ignore = t.slice(1, 0, 2).flatten_to(2); }, {"flatten_to", "f32 [2, 2, 4]"});
  expect_says([&] { std::ignore = t.flatten_to(4); }, {"flatten_to", "f32 [2, 3, 4]", "4"});
  expect_says([&] { std::ignore = t.flatten_to(0); }, {"flatten_to", "0"});
}

TEST_F(TensorViews, TransposedSwapsTwoAxes) {
  const Tensor t = counting({2, 3, 2}).transposed(0, -2);
  EXPECT_EQ(t.shape(), Shape({3, 2, 2}));
  EXPECT_EQ(to_host(t), Numbers({0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
  EXPECT_FALSE(t.contiguous());
  EXPECT_TRUE(t.transposed(0, 1).contiguous());
  EXPECT_FALSE(counting({2, 3}).transposed(0, 1).rows_contiguous());
  EXPECT_EQ(to_host(counting({2, 2}).transposed(1, 1)), Numbers({0, 1, 2, 3}));
}

TEST_F(TensorViews, ExpandedRepeatsAnAxisOfOne) {
  const Tensor t = counting({2, 1, 2}).expanded(1, 3);
  EXPECT_EQ(t.shape(), Shape({2, 3, 2}));
  EXPECT_EQ(t.stride(1), 0);
  EXPECT_EQ(to_host(t), Numbers({0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}));
  EXPECT_FALSE(t.contiguous());
  EXPECT_EQ(counting({2, 1}).expanded(-1, 4).stride(-1), 0);
  expect_says([&] { std::ignore = counting({2, 2}).expanded(0, 4); }, {"expanded", "axis 0", "f32 [2, 2]", "size 2"});
}

TEST_F(TensorViews, RebasedFindsTheSamePlaceInOtherBytes) {
  const Tensor t = counting({2, 3}), other = counting({2, 3});
  const Tensor part = t.slice(1, 1, 2);
  const Tensor moved = part.rebased(t.data(), other.data());
  EXPECT_EQ(moved.data() - other.data(), part.data() - t.data());
  EXPECT_EQ(moved.stride(0), 3);
}

TEST_F(TensorViews, OfEmptyTensorsWork) {
  const Tensor t = counting({0, 6});
  EXPECT_EQ(t.count(), 0);
  EXPECT_TRUE(t.contiguous());
  EXPECT_EQ(t.rows(), 0);
  EXPECT_EQ(t.view({3, 0}).shape(), Shape({3, 0}));
  EXPECT_EQ(t.split_last(2, 3).shape(), Shape({0, 2, 3}));
  EXPECT_EQ(t.split_last(2, 3).merge_last().shape(), Shape({0, 6}));
  EXPECT_EQ(t.split_last(2, 3).flatten_to(2).shape(), Shape({0, 3}));
  EXPECT_EQ(t.transposed(0, 1).shape(), Shape({6, 0}));
  EXPECT_EQ(t.slice(1, 2, 2).shape(), Shape({0, 2}));
  EXPECT_TRUE(to_host(t).empty());
}

TEST_F(TensorViews, OfManyEmptyRowsDoNotOverflow) {
  const int64_t big = int64_t{1} << 31;
  const Tensor t(cpu_device(), nullptr, DType::f32, {0, big, big});
  EXPECT_TRUE(t.contiguous());
}

TEST_F(TensorViews, KeepTheNodeOfTheTensorTheyCameFrom) {
  const Tensor t = counting({2, 3, 4}).with_node(5);
  for (const Tensor& v : {t.view({24}), t.slice(0, 0, 1), t.split_last(2, 2), t.merge_last(), t.flatten_to(1),
                          t.transposed(0, 1), t.slice(0, 0, 1).expanded(0, 3)}) {
    EXPECT_EQ(v.node(), 5) << v;
  }
  EXPECT_EQ(counting({2}).node(), -1);
}

TEST(Tensor, StartsAbsent) {
  const Tensor t;
  EXPECT_FALSE(t);
  std::ostringstream out;
  out << t;
  EXPECT_EQ(out.str(), "(no tensor)");
}

TEST(Tensor, PrintsFormatAndShape) {
  const Storage s(cpu_device(), Format(Block::q8_0), 64);
  std::ostringstream out;
  out << Tensor(s, {2, 32});
  EXPECT_EQ(out.str(), "q8_0 [2, 32]");
}

TEST(Tensor, FitsIntoItsStorage) {
  const Storage s(cpu_device(), DType::f32, 6);
  EXPECT_EQ(Tensor(s, {2, 3}).data(), s.data());
  expect_says([&] { Tensor(s, {7}); }, {"f32 [7]", "28", "24"});
}

TEST(Tensor, AScalarIsOneRowOfOne) {
  const Storage s(cpu_device(), DType::f64, 1);
  const Tensor t(s, Shape());
  EXPECT_EQ(t.rank(), 0);
  EXPECT_EQ(t.rows(), 1);
  EXPECT_EQ(t.cols(), 1);
  EXPECT_TRUE(t.contiguous());
}

TEST(Tensor, RowsOfBlocksCanBeSlicedButNotCut) {
  const Storage s(cpu_device(), Format(Block::q8_0), 4 * 64);
  const Tensor t(s, {4, 64});
  EXPECT_EQ(t.slice(0, 1, 2).data() - t.data(), 2 * 34);
  expect_says([&] { std::ignore = t.slice(1, 0, 32); }, {"slice", "q8_0"});
  expect_says([&] { std::ignore = t.slice(-1, 0, 32); }, {"slice", "q8_0"});
  expect_says([&] { std::ignore = t.transposed(0, 1); }, {"transposed", "q8_0"});
}

}  // namespace
}  // namespace qkv::test

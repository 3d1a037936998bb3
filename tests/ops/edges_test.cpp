// Edges that the shapes of the op table do not reach, on the fastest tables: rows longer than what a kernel takes at a
// time, gradients that are added, rows of no sequence.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "ops/positions.h"
#include "support/pass.h"

namespace qkv {
namespace edges_test {

// Long rows are dropped some columns at a time; the mask goes on through them.
TEST(OpEdges, AMaskDoesNotRepeatInALongRow) {
  constexpr int64_t kRows = 3, kColumns = 700;
  const auto dropped = [](const Kernels& kernels) {
    test::Pass pass({.kernels = &kernels});
    pass.cx.training = true;
    pass.cx.rng = {.seed = 3, .step = 2};
    const test::Numbers ones(kRows * kColumns, 1.0);
    return test::to_host(
        ops::dropout(pass.cx, pass.input(ones, {kRows, kColumns}), {.p = 0.5F, .site = Site::mlp_post}));
  };
  const test::Numbers right = dropped(kernels::ref::table());
  EXPECT_NE(test::Numbers(right.begin(), right.begin() + 256), test::Numbers(right.begin() + 256, right.begin() + 512));
  for (const Kernels* table : test::fastest_tables()) EXPECT_EQ(dropped(*table), right) << table->name;
}

// x is read by a rotation of some columns and by another op: its gradient is the sum of both in all columns.
TEST(OpEdges, TurnedAndOtherColumnsAddToAGradient) {
  constexpr int64_t kRows = 5, kHeads = 2, kWidth = 12;
  const auto gradient = [](const Kernels& kernels, int64_t first) {
    test::Pass pass({.kernels = &kernels, .tape = true});
    const ops::RopeTable table = ops::rope_table(10000, 6, kRows);
    const Shape turned{kRows, 3};
    const ops::RotaryOptions options{
        .cos = pass.cx.upload(table.cos, turned), .sin = pass.cx.upload(table.sin, turned), .first = first};
    const test::Numbers numbers = test::normals(1, kRows * kHeads * kWidth);
    const Shape shape{kRows, kHeads, kWidth};
    const Tensor x = pass.input(numbers, shape);
    const Tensor y = ops::rotary(pass.cx, x, pass.cx.upload(std::vector<int32_t>{0, 1, 2, 3, 4}), options);
    const Tensor other = ops::activation(pass.cx, x, ops::act::tanh);
    const Tensor sum = ops::add(pass.cx, y, other);
    const Tensor dy = pass.cx.constant(shape, sum.dtype());
    test::to_device(dy, test::normals(2, kRows * kHeads * kWidth));
    pass.tape.seed(pass.cx, sum, dy);
    pass.tape.backward(pass.cx);
    return test::to_host(pass.tape.gradient(x));
  };
  for (const int64_t first : {0, 3, 6}) {
    const test::Numbers right = gradient(kernels::ref::table(), first);
    for (const Kernels* table : test::fastest_tables()) {
      EXPECT_LE(test::nmse(gradient(*table, first), right), 1e-10) << table->name << ", columns from " << first;
    }
  }
}

// Rows of a pattern may be asked for in any order, and padding among them belongs to no sequence.
TEST(OpEdges, RowsOfAPatternStandWhereTheyWereAskedFor) {
  constexpr int64_t kLength = 6, kHeads = 2, kWidth = 8;
  const std::vector<int32_t> lengths{4, 5};
  for (const Kernels* table : test::fastest_tables()) {
    test::Pass pass({.kernels = table});
    const Rows rows = Rows::padded(pass.cx, lengths, kLength);
    const Shape shape{rows.rows, kHeads, kWidth};
    const auto numbers = [&](uint64_t seed) { return pass.input(test::normals(seed, shape.count()), shape); };
    const Tensor q = numbers(1), k = numbers(2), v = numbers(3);
    const ops::AttentionOptions options{.causal = true};
    const Tensor lse = ops::attention(pass.cx, q, k, v, rows, options).lse;
    const auto pattern = [&](const Tensor& which) {
      return test::to_host(ops::attention_pattern(pass.cx, q, k, lse, rows, options, {.which = which}));
    };
    const test::Numbers all = pattern({});
    const auto row = static_cast<std::ptrdiff_t>(all.size()) / rows.rows;
    for (const std::vector<int32_t>& wanted : {std::vector<int32_t>{2, 4, 3}, std::vector<int32_t>{6, 5, 7, 8},
                                               std::vector<int32_t>{3, 2, 1, 11, 0}, std::vector<int32_t>{4, 5, 10}}) {
      const test::Numbers got = pattern(pass.cx.upload(wanted));
      for (size_t r = 0; r < wanted.size(); ++r) {
        EXPECT_TRUE(std::equal(all.begin() + wanted[r] * row, all.begin() + (wanted[r] + 1) * row,
                               got.begin() + static_cast<std::ptrdiff_t>(r) * row))
            << table->name << ": row " << wanted[r] << ", asked for as number " << r;
      }
    }
  }
}

// transformers: mscale counts only beside mscale_all_dim, alone the usual factor holds.
TEST(OpEdges, YarnsMscaleCountsOnlyBesideTheOther) {
  ops::RopeScaling scaling{.kind = ops::RopeScaling::Kind::yarn, .factor = 4, .original_context = 16};
  const std::vector<float> usual = ops::rope_table(10000, 8, 40, scaling).cos;
  scaling.mscale = 0.7;
  EXPECT_EQ(ops::rope_table(10000, 8, 40, scaling).cos, usual);
  scaling.mscale = 0;
  scaling.mscale_all_dim = 0.7;
  EXPECT_EQ(ops::rope_table(10000, 8, 40, scaling).cos, usual);
  scaling.mscale = 1;
  EXPECT_NE(ops::rope_table(10000, 8, 40, scaling).cos, usual);
}

}  // namespace edges_test
}  // namespace qkv

// Rows of a pass of 4096 alone and in chunks, at widths that tiles and packs fill: kernels take one form for few rows and
// others for many, and a row has the same bits in all of them.
#include <gtest/gtest.h>

#include "op_case_parts.h"
#include "ops/ops.h"
#include "ops/same_rows.h"

namespace qkv::test {
namespace many_rows_test {

using op_table::Outputs, op_table::rows, op_table::weight;

constexpr int64_t kAll = 4096;

ops::FeedForwardOptions feed_forward(OpIo& io) {
  return {.up = {&io.weight("up"), &io.weight("up_bias")},
          .down = {&io.weight("down"), &io.weight("down_bias")},
          .out = io.cx.precision.exact,
          .residual = {io["residual"]}};
}

OpInput exact(OpInput input) {
  input.exact = true;
  return input;
}

std::vector<OpCase> cases() {
  const OpInput x = rows("x", {128}), residual = exact(rows("residual", {128}));
  const std::vector<OpInput> feed{x,
                                  residual,
                                  weight("up", {320, 128}),
                                  weight("up_bias", {320}),
                                  weight("down", {128, 320}),
                                  weight("down_bias", {128})};
  std::vector<OpInput> gated = feed;
  gated.push_back(weight("gate", {320, 128}));
  std::vector<OpCase> all;
  all.push_back(
      {.name = "linear", .inputs = {x, weight("w", {192, 128}), weight("b", {192})}, .run = [](OpIo& io) -> Outputs {
         return {ops::linear(io.cx, io["x"], io.weight("w"), {.bias = &io.weight("b")})};
       }});
  all.push_back({.name = "linear_exact", .inputs = {x, weight("w", {72, 128})}, .run = [](OpIo& io) -> Outputs {
                   return {ops::linear(io.cx, io["x"], io.weight("w"), {.dtype = io.cx.precision.exact})};
                 }});
  all.push_back({.name = "feed_forward_gelu", .inputs = feed, .run = [](OpIo& io) -> Outputs {
                   ops::FeedForwardOptions options = feed_forward(io);
                   options.form = {ops::act::gelu_tanh};
                   return {ops::feed_forward(io.cx, io["x"], options)};
                 }});
  all.push_back({.name = "feed_forward_swiglu", .inputs = gated, .run = [](OpIo& io) -> Outputs {
                   ops::FeedForwardOptions options = feed_forward(io);
                   options.gate = {&io.weight("gate")};
                   options.form = ops::gate::swiglu;
                   return {ops::feed_forward(io.cx, io["x"], options)};
                 }});
  for (const int64_t width : {256, 520}) {
    all.push_back({.name = "rms_norm_" + std::to_string(width),
                   .inputs = {exact(rows("x", {width})), weight("w", {width})},
                   .run = [](OpIo& io) -> Outputs {
                     return {ops::rms_norm(io.cx, io["x"], {.weight = &io.weight("w"), .eps = 1e-6})};
                   }});
  }
  return all;
}

class ManyRows : public ::testing::TestWithParam<OpCase> {};

TEST_P(ManyRows, HaveTheBitsOfFew) {
  const OpCase& op = GetParam();
  for (const Kernels* table : fastest_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      SCOPED_TRACE(std::string(table->name) + " " + name_of(precision.compute));
      const auto run = [&](int64_t count, int64_t first) {
        const OpValues values = op_values(op, count, first, precision.compute);
        return run_op(op, values,
                      {.kernels = table, .precision = precision, .threads = 2, .rows = count, .first_row = first});
      };
      const OpResult all = run(kAll, 0);
      for (const int64_t count : {1, 2, 7, 16, 17, 64, 65, 512}) {
        expect_same_rows(op, "M=" + std::to_string(count), run(count, 0), 0, count, all);
        const int64_t first = kAll - count - 3;
        expect_same_rows(op, "the last but three of " + std::to_string(count), run(count, first), first, count, all);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ManyRows, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param.name; });

}  // namespace many_rows_test
}  // namespace qkv::test

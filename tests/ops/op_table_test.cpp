// The checks every row of the op table (tests/op_cases.cpp) goes through.
#include <gtest/gtest.h>

#include <cmath>

#include "op_cases.h"
#include "ops/same_rows.h"

namespace qkv::test {
namespace {

double norm(const Numbers& x) {
  double total = 0;
  for (const double v : x) total += v * v;
  return std::sqrt(total);
}

// (a) bounds: correctness.md. A bf16 result has passed through at most `bf16_roundings` roundings of relative error u
// each, and f32 sums along the way; u^2 bounds the mean square of one.
double bound(const OpCase& op, Precision precision) {
  if (precision.compute == DType::f32) return 1e-12;
  return op.bf16_roundings * unit_roundoff(DType::bf16) * unit_roundoff(DType::bf16);
}

class OpTable : public ::testing::TestWithParam<OpCase> {};

void expect_close(const std::string& what, const Numbers& got, const Numbers& right, double limit) {
  if (norm(right) == 0) {
    EXPECT_EQ(norm(got), 0) << what << " must be exactly zero";
  } else {
    EXPECT_LE(nmse(got, right), limit) << what;
  }
}

TEST_P(OpTable, EveryKernelTableAgreesWithRefInDouble) {
  const OpCase& op = GetParam();
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    const OpValues values = op_values(op, op.small_rows, 0, precision.compute);
    const OpResult right = run_op(op, values, {.rows = op.small_rows});
    for (const Kernels* table : kernels::all_tables()) {
      const OpResult got =
          run_op(op, values, {.kernels = table, .precision = precision, .threads = 2, .rows = op.small_rows});
      const std::string where = std::string(table->name) + " " + name_of(precision.compute) + " ";
      for (size_t i = 0; i < right.outputs.size(); ++i) {
        expect_close(where + "output " + std::to_string(i), got.outputs[i], right.outputs[i], bound(op, precision));
      }
      for (const auto& [name, gradient] : right.gradients) {
        expect_close(where + "d " + name, got.gradients.at(name), gradient, bound(op, precision));
      }
    }
  }
}

// loss = sum over outputs of seed . output
double loss_of(const OpCase& op, const Kernels* table, const OpValues& values) {
  const OpResult result = run_op(op, values, {.kernels = table, .rows = op.small_rows, .backward = false});
  double loss = 0;
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const Numbers seed = output_seed(i, 0, result.outputs[i].size(), DType::f64);
    for (size_t e = 0; e < seed.size(); ++e) loss += seed[e] * result.outputs[i][e];
  }
  return loss;
}

// Five-point central difference: the error falls with the fourth power of the step.
double slope(const OpCase& op, const Kernels* table, OpValues values, const std::string& input, size_t element) {
  constexpr double kStep = 1e-3;
  const double at = values[input][element];
  const auto moved = [&](double by) {
    values[input][element] = at + by * kStep;
    return loss_of(op, table, values);
  };
  return (moved(-2) - 8 * moved(-1) + 8 * moved(1) - moved(2)) / (12 * kStep);
}

// Long inputs are sampled: so many elements of each.
void expect_finite_differences(const OpCase& op, const Kernels* table, size_t sampled) {
  const OpValues values = op_values(op, op.small_rows, 0, DType::f64);
  const OpResult result = run_op(op, values, {.kernels = table, .rows = op.small_rows});
  for (const auto& [name, gradient] : result.gradients) {
    const size_t stride = std::max<size_t>(1, gradient.size() / sampled);
    Numbers measured, difference;
    for (size_t e = 0; e < gradient.size(); e += stride) {
      measured.push_back(slope(op, table, values, name, e));
      difference.push_back(measured.back() - gradient[e]);
    }
    const double scale = std::max(norm(measured), 1e-4 * std::sqrt(static_cast<double>(measured.size())));
    EXPECT_LE(norm(difference) / scale, 1e-6) << table->name << " d " << name;
  }
}

TEST_P(OpTable, TapeGradientsAreFiniteDifferences) {
  expect_finite_differences(GetParam(), &kernels::ref::table(), 60);
  for (const Kernels* table : kernels::all_tables()) {
    if (table != &kernels::ref::table()) expect_finite_differences(GetParam(), table, 4);
  }
}

class RowWiseOps : public ::testing::TestWithParam<OpCase> {};

TEST_P(RowWiseOps, BitsOfARowAreItsOwn) {
  const OpCase& op = GetParam();
#if defined(__SANITIZE_ADDRESS__)
  constexpr int64_t kMost = 64;  // bits are the plain build's business; here memory is watched, and slowly
#else
  constexpr int64_t kMost = 512;
#endif
  for (const Kernels* table : kernels::all_tables()) {
    const int64_t all_rows = table == &kernels::ref::table() ? 64 : kMost;  // ref takes row after row, slowly
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      const auto run = [&](int64_t rows, int64_t first, int threads, bool backward) {
        return run_op(op, op_values(op, rows, first, precision.compute),
                      {.kernels = table,
                       .precision = precision,
                       .threads = threads,
                       .rows = rows,
                       .first_row = first,
                       .backward = backward});
      };
      const OpResult all = run(all_rows, 0, 1, true);
      for (const int64_t rows : {1, 2, 7, 15, 16, 17, 32, 64, 65}) {
        if (rows > all_rows) continue;
        expect_same_rows(op, "M=" + std::to_string(rows), run(rows, 0, 1, true), 0, rows, all);
        expect_same_rows(op, "M=" + std::to_string(rows) + " on 2 threads", run(rows, 0, 2, true), 0, rows, all);
      }
      const int64_t cut = all_rows / 5;
      for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, cut}, {cut, 1}, {cut + 1, all_rows - cut - 1}}) {
        expect_same_rows(op, "chunk at " + std::to_string(first), run(rows, first, 2, true), first, rows, all);
      }
    }
  }
}

TEST_P(OpTable, OneThreadOrTwoGiveTheSameBits) {
  const OpCase& op = GetParam();
  const int64_t rows = op.row_wise ? 67 : op.small_rows;
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      const OpValues values = op_values(op, rows, 0, precision.compute);
      const OpResult one = run_op(op, values, {.kernels = table, .precision = precision, .threads = 1, .rows = rows});
      const OpResult two = run_op(op, values, {.kernels = table, .precision = precision, .threads = 2, .rows = rows});
      EXPECT_EQ(one.outputs, two.outputs);
      EXPECT_EQ(one.gradients, two.gradients);
    }
  }
}

std::vector<OpCase> row_wise_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& op : op_cases()) {
    if (op.row_wise) cases.push_back(op);
  }
  return cases;
}

const auto by_name = [](const auto& row) { return row.param.name; };
INSTANTIATE_TEST_SUITE_P(Ops, OpTable, ::testing::ValuesIn(op_cases()), by_name);
INSTANTIATE_TEST_SUITE_P(Ops, RowWiseOps, ::testing::ValuesIn(row_wise_cases()), by_name);

}  // namespace
}  // namespace qkv::test

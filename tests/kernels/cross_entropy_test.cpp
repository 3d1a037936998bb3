// The fused output projection and loss with several blocks of rows and vocabulary; the op table has only small shapes.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace cross_entropy_test {

constexpr int64_t kWidth = 40, kVocab = 1100, kRows = 600;
constexpr CrossEntropyRule kRule{.smoothing = 0.1, .z_loss = 1e-3, .softcap = 6, .ignore = 5};

struct Result {
  Numbers losses, dx, dw, db;
  bool operator==(const Result&) const = default;
};

Result run(const Pass::Options& how, int64_t rows, bool recompute = false) {
  Pass pass(how);
  pass.cx.recompute_layers = recompute;
  const Numbers x = normals(1, kRows * kWidth);
  const Tensor input =
      pass.input({x.data(), static_cast<size_t>(rows * kWidth)}, {rows, kWidth}, how.precision.compute);
  const Param &w = pass.param("w", normals(2, kVocab * kWidth), {kVocab, kWidth}),
              &b = pass.param("b", normals(3, kVocab), {kVocab});
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<int32_t>((r * 7919 + 5) % kVocab));
  const ops::Loss loss =
      ops::cross_entropy(pass.cx, input, w, pass.indices(targets, {rows}), {.bias = &b, .rule = kRule, .divisor = 100});
  pass.tape.backward(pass.cx, loss.loss);
  return {to_host(loss.losses), to_host(pass.tape.gradient(input)), to_host(w.gradient()), to_host(b.gradient())};
}

TEST(CrossEntropyBlocks, AgreeWithRefInDouble) {
  const Result right = run({.precision = Precision::f64(), .tape = true}, kRows);
  for (const Kernels* table : kernels::all_tables()) {
    const Result got = run({.kernels = table, .precision = Precision::f32(), .threads = 2, .tape = true}, kRows);
    EXPECT_LE(nmse(got.losses, right.losses), 1e-12) << table->name;
    EXPECT_LE(nmse(got.dx, right.dx), 1e-12) << table->name;
    EXPECT_LE(nmse(got.dw, right.dw), 1e-12) << table->name;
    EXPECT_LE(nmse(got.db, right.db), 1e-12) << table->name;
  }
}

// A device that keeps logits may turn them into gradients at once.
TEST(CrossEntropyBlocks, AreTheSameWhereLogitsAreComputedAgain) {
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      const Pass::Options how{.kernels = table, .precision = precision, .threads = 2, .tape = true};
      EXPECT_TRUE(run(how, kRows) == run(how, kRows, true)) << table->name;
    }
  }
}

// More rows than a device that keeps logits takes at a time.
TEST(CrossEntropyBlocks, OfManyRowsAgreeWithRefInDoubleKeptOrNot) {
  constexpr int64_t kMany = kLogitRows + 70, kFew = 24, kNarrow = 8;
  const auto gradients = [&](const Pass::Options& how, bool recompute = false) {
    Pass pass(how);
    pass.cx.recompute_layers = recompute;
    const Tensor x = pass.input(normals(1, kMany * kNarrow), {kMany, kNarrow}, how.precision.compute);
    const Param &w = pass.param("w", normals(2, kFew * kNarrow), {kFew, kNarrow}),
                &b = pass.param("b", normals(3, kFew), {kFew});
    std::vector<int32_t> targets;
    for (int64_t r = 0; r < kMany; ++r)
      targets.push_back(static_cast<int32_t>(r < kLogitRows ? r % (kFew - 1) : kFew - 1));
    const ops::Loss loss = ops::cross_entropy(pass.cx, x, w, pass.indices(targets, {kMany}), {.bias = &b});
    pass.tape.backward(pass.cx, loss.loss);
    return Result{to_host(loss.losses), to_host(pass.tape.gradient(x)), to_host(w.gradient()), to_host(b.gradient())};
  };
  const Result right = gradients({.precision = Precision::f64(), .tape = true});
  for (const Kernels* table : kernels::all_tables()) {
    const Pass::Options how{.kernels = table, .precision = Precision::f32(), .threads = 2, .tape = true};
    const Result got = gradients(how);
    EXPECT_LE(nmse(got.dw, right.dw), 1e-8) << table->name;  // chains of many rows; 6e-6 without the last ones
    EXPECT_LE(nmse(got.db, right.db), 1e-8) << table->name;
    EXPECT_TRUE(got == gradients(how, true)) << table->name;
  }
}

// More entries than a GPU's fast memory holds of a row.
TEST(CrossEntropyBlocks, OfLongRowsAgreeWithRefInDouble) {
  constexpr int64_t kLong = 60'001, kNarrow = 8, kFew = 9;
  const auto gradients = [&](const Pass::Options& how) {
    Pass pass(how);
    const Tensor x = pass.input(normals(1, kFew * kNarrow), {kFew, kNarrow}, how.precision.compute);
    const Param& w = pass.param("w", normals(2, kLong * kNarrow), {kLong, kNarrow});
    std::vector<int32_t> targets;
    for (int64_t r = 0; r < kFew; ++r) targets.push_back(static_cast<int32_t>(kLong - 1 - r * 7));
    const ops::Loss loss = ops::cross_entropy(pass.cx, x, w, pass.indices(targets, {kFew}), {.divisor = kFew});
    pass.tape.backward(pass.cx, loss.loss);
    return std::pair{to_host(loss.losses), to_host(pass.tape.gradient(x))};
  };
  const auto right = gradients({.precision = Precision::f64(), .tape = true});
  for (const Kernels* table : kernels::all_tables()) {
    const auto got = gradients({.kernels = table, .precision = Precision::bf16(), .threads = 2, .tape = true});
    EXPECT_LE(nmse(got.first, right.first), 1e-5) << table->name;
    EXPECT_LE(nmse(got.second, right.second), 1e-4) << table->name;
  }
}

// Rows that a GPU's fast memory holds in several chunks, and more of them than it has blocks.
TEST(CrossEntropyBlocks, OfRowsInChunksAreTheSameWhereLogitsAreComputedAgain) {
  constexpr int64_t kLong = 33'001, kNarrow = 8, kMany = 600;
  for (const Kernels* table : kernels::all_tables()) {
    if (table == &kernels::ref::table()) continue;  // has no blocks
    const auto gradients = [&](bool recompute) {
      Pass pass({.kernels = table, .precision = Precision::bf16(), .threads = 2, .tape = true});
      pass.cx.recompute_layers = recompute;
      const Tensor x = pass.input(normals(1, kMany * kNarrow), {kMany, kNarrow}, DType::bf16);
      const Param& w = pass.param("w", normals(2, kLong * kNarrow), {kLong, kNarrow});
      std::vector<int32_t> targets;
      for (int64_t r = 0; r < kMany; ++r) targets.push_back(static_cast<int32_t>(r * 54 % kLong));
      const ops::Loss loss = ops::cross_entropy(pass.cx, x, w, pass.indices(targets, {kMany}), {.divisor = kMany});
      pass.tape.backward(pass.cx, loss.loss);
      return Result{to_host(loss.losses), to_host(pass.tape.gradient(x)), to_host(w.gradient()), {}};
    };
    EXPECT_TRUE(gradients(false) == gradients(true)) << table->name;
  }
}

TEST(CrossEntropyBlocks, DependOnNeitherThreadsNorOtherRows) {
  for (const Kernels* table : kernels::all_tables()) {
    if (table == &kernels::ref::table()) continue;  // has no blocks
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      const auto with = [&](int64_t rows, int threads) {
        return run({.kernels = table, .precision = precision, .threads = threads, .tape = true}, rows);
      };
      const Result all = with(kRows, 1), two = with(kRows, 2);
      EXPECT_EQ(all.losses, two.losses);
      EXPECT_EQ(all.dx, two.dx);
      EXPECT_EQ(all.dw, two.dw);
      EXPECT_EQ(all.db, two.db);
      for (const int64_t rows : {1, 65, 129}) {
        const Result some = with(rows, 2);
        EXPECT_EQ(some.losses, Numbers(all.losses.begin(), all.losses.begin() + rows));
        EXPECT_EQ(some.dx, Numbers(all.dx.begin(), all.dx.begin() + rows * kWidth));
      }
    }
  }
}

}  // namespace cross_entropy_test
}  // namespace qkv::test

// The loss by its definition: all logits in double, one row at a time.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace cross_entropy_test {

constexpr int64_t kWidth = 9, kWords = 37;

struct Batch {
  Numbers x, w, b;
  std::vector<int32_t> targets;

  explicit Batch(int64_t rows) : x(normals(1, rows * kWidth)), w(normals(2, kWords * kWidth)), b(normals(3, kWords)) {
    for (int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<int32_t>((7 * r + 3) % kWords));
  }
};

double loss_by_definition(const Batch& batch, size_t row, const CrossEntropyRule& rule) {
  if (batch.targets[row] == rule.ignore) return 0;
  Numbers logits;
  double sum = 0, mean = 0;
  for (size_t v = 0; v < kWords; ++v) {
    double l = batch.b[v];
    for (size_t c = 0; c < kWidth; ++c) l += batch.x[row * kWidth + c] * batch.w[v * kWidth + c];
    if (rule.softcap > 0) l = rule.softcap * std::tanh(l / rule.softcap);
    logits.push_back(l);
    sum += std::exp(l);
    mean += l / static_cast<double>(kWords);
  }
  const double lse = std::log(sum), nll = lse - logits[static_cast<size_t>(batch.targets[row])];
  return (1 - rule.smoothing) * nll + rule.smoothing * (lse - mean) + rule.z_loss * lse * lse;
}

TEST(CrossEntropy, IsWhatItsDefinitionSays) {
  const Batch batch(6);
  for (const CrossEntropyRule& rule : {CrossEntropyRule{}, CrossEntropyRule{.smoothing = 0.1},
                                       CrossEntropyRule{.z_loss = 1e-3}, CrossEntropyRule{.softcap = 2},
                                       CrossEntropyRule{.smoothing = 0.3, .z_loss = 0.1, .softcap = 5, .ignore = 10}}) {
    Pass pass({.precision = Precision::f64()});
    const ops::Loss got = ops::cross_entropy(
        pass.cx, pass.input(batch.x, {6, kWidth}), pass.param("w", batch.w, {kWords, kWidth}),
        pass.indices(batch.targets, {6}), {.bias = &pass.param("b", batch.b, {kWords}), .rule = rule, .divisor = 5});
    Numbers right;
    double total = 0;
    for (size_t r = 0; r < 6; ++r) {
      right.push_back(loss_by_definition(batch, r, rule));
      total += right.back();
    }
    EXPECT_LE(nmse(to_host(got.losses), right), 1e-28);
    EXPECT_NEAR(to_host(got.loss).front(), total / 5, 1e-14 * total);
  }
}

TEST(CrossEntropy, OfAModelThatKnowsNothingIsLogV) {
  Pass pass;
  const Batch batch(4);
  const ops::Loss got = ops::cross_entropy(pass.cx, pass.input(batch.x, {4, kWidth}),
                                           pass.param("w", Numbers(kWords * kWidth, 0.0), {kWords, kWidth}),
                                           pass.indices(batch.targets, {4}), {.divisor = 4});
  EXPECT_NEAR(to_host(got.loss).front(), std::log(static_cast<double>(kWords)), 1e-6);
}

// Losses and gradients of a row do not depend on the number of other rows.
TEST(CrossEntropy, BitsOfARowAreItsOwn) {
  struct Result {
    Numbers losses, dx;
  };
  const Batch batch(64);
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      const auto run = [&](int64_t rows, int threads) -> Result {
        Pass pass({.kernels = table, .precision = precision, .threads = threads, .tape = true});
        const std::span<const double> x(batch.x.data(), static_cast<size_t>(rows * kWidth));
        const Tensor input = pass.input(x, {rows, kWidth}, precision.compute);
        const std::vector<int32_t> targets(batch.targets.begin(), batch.targets.begin() + rows);
        const ops::Loss loss = ops::cross_entropy(pass.cx, input, pass.param("w", batch.w, {kWords, kWidth}),
                                                  pass.indices(targets, {rows}), {.divisor = 64});
        pass.tape.backward(pass.cx, loss.loss);
        return {to_host(loss.losses), to_host(pass.tape.gradient(input))};
      };
      const Result all = run(64, 1);
      for (const int64_t rows : {1, 2, 15, 16, 17, 32}) {
        for (const int threads : {1, 2}) {
          const Result some = run(rows, threads);
          EXPECT_EQ(some.losses, Numbers(all.losses.begin(), all.losses.begin() + rows));
          EXPECT_EQ(some.dx, Numbers(all.dx.begin(), all.dx.begin() + rows * kWidth));
        }
      }
    }
  }
}

}  // namespace cross_entropy_test
}  // namespace qkv::test

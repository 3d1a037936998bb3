#include "eval/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/expect_error.h"
#include "base/philox.h"

namespace qkv {
namespace {

struct Mean {
  std::vector<double> values;
  double operator()(std::span<const int64_t> picked) const {
    double sum = 0;
    for (const int64_t i : picked) sum += values.at(static_cast<size_t>(i));
    return sum / static_cast<double>(picked.size());
  }
};

// The mean of n values has the standard error s / sqrt(n), and 95 % of a normal lies within 1.96 of it.
TEST(Bootstrap, FindsTheStandardErrorOfAMean) {
  Mean mean;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    mean.values.push_back(normal(fold({.seed = 5}), 0, i));
    sum += mean.values.back();
    squares += mean.values.back() * mean.values.back();
  }
  const double average = sum / 400, error = std::sqrt((squares / 400 - average * average) / 400);
  const Interval got = bootstrap_interval(400, mean, {.rounds = 4000, .seed = 1});
  EXPECT_NEAR(got.low, average - 1.96 * error, 0.15 * error);
  EXPECT_NEAR(got.high, average + 1.96 * error, 0.15 * error);
  const Interval narrow = bootstrap_interval(400, mean, {.rounds = 4000, .confidence = 0.68, .seed = 1});
  EXPECT_NEAR(narrow.high - narrow.low, 2 * error, 0.15 * error);
}

TEST(Bootstrap, IsAFunctionOfTheSeed) {
  const Mean mean{{1, 2, 3, 4, 5, 10}};
  const Interval a = bootstrap_interval(6, mean, {.seed = 3}), b = bootstrap_interval(6, mean, {.seed = 3});
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  std::vector<int64_t> first, second;
  const auto keep = [](std::vector<int64_t>& into) {
    return [&into](std::span<const int64_t> picked) {
      into.assign(picked.begin(), picked.end());
      return 0.0;
    };
  };
  bootstrap_interval(100, keep(first), {.rounds = 1, .seed = 3});
  bootstrap_interval(100, keep(second), {.rounds = 1, .seed = 4});
  EXPECT_NE(first, second);
}

TEST(Bootstrap, OneItemHasNoSpreadAndNoneIsAnError) {
  const Mean mean{{7}};
  const Interval got = bootstrap_interval(1, mean);
  EXPECT_EQ(got.low, 7);
  EXPECT_EQ(got.high, 7);
  expect_error([&] { bootstrap_interval(0, mean); }, {"0 items"});
  expect_error([&] { bootstrap_interval(1, mean, {.confidence = 1.0}); }, {"confidence 1"});
}

}  // namespace
}  // namespace qkv

#include "eval/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
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
  for (const auto& interval : {bootstrap_interval, percentile_interval}) {
    const Interval got = interval(400, mean, {.rounds = 4000, .seed = 1});
    EXPECT_NEAR(got.low, average - 1.96 * error, 0.15 * error);
    EXPECT_NEAR(got.high, average + 1.96 * error, 0.15 * error);
    const Interval narrow = interval(400, mean, {.rounds = 4000, .confidence = 0.68, .seed = 1});
    EXPECT_NEAR(narrow.high - narrow.low, 2 * error, 0.15 * error);
  }
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
      return static_cast<double>(picked.front());
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

// --- coverage ---------------------------------------------------------------------------------------------------------

// Items whose true mean is known. Each is an amount and how often it counts.
struct Sample {
  std::vector<double> sums, counts;
};
struct Source {
  const char* name;
  double truth;
  std::function<Sample(int64_t n, PhiloxKey key)> draw;
};

double uniform_at(PhiloxKey key, uint64_t i, uint64_t k) {
  return std::clamp(static_cast<double>(uniform01(random_u32(key, i, k))), 1e-7, 1 - 1e-7);
}
double exponential_at(PhiloxKey key, uint64_t i, uint64_t k) {
  return -std::log(uniform_at(key, i, k));
}
// A share that is a / (a + b) on average; a and b are whole.
double beta_at(PhiloxKey key, uint64_t i, uint64_t a, uint64_t b) {
  double x = 0, y = 0;
  for (uint64_t k = 0; k < a; ++k) x += exponential_at(key, i, 100 + k);
  for (uint64_t k = 0; k < b; ++k) y += exponential_at(key, i, 200 + k);
  return x / (x + y);
}

// What heads are measured by: shares of texts of equal and of unequal length, and a few right and wrong answers a text.
std::vector<Source> sources() {
  const auto of_one = [](auto value) {
    return [value](int64_t n, PhiloxKey key) {
      Sample made;
      for (uint64_t i = 0; i < static_cast<uint64_t>(n); ++i) {
        made.sums.push_back(value(key, i));
        made.counts.push_back(1);
      }
      return made;
    };
  };
  const auto of_length = [](uint64_t least, uint64_t most, auto share) {
    return [=](int64_t n, PhiloxKey key) {
      Sample made;
      for (uint64_t i = 0; i < static_cast<uint64_t>(n); ++i) {
        const auto length = static_cast<double>(least + random_u32(key, i, 1) % (most - least + 1));
        made.counts.push_back(length);
        made.sums.push_back(share(key, i, length));
      }
      return made;
    };
  };
  const auto answers = [](uint64_t a, uint64_t b) {
    return [=](PhiloxKey key, uint64_t i, double length) {
      const double share = beta_at(key, i, a, b);
      double right = 0;
      for (uint64_t k = 0; k < static_cast<uint64_t>(length); ++k) right += uniform_at(key, i, 300 + k) < share ? 1 : 0;
      return right;
    };
  };
  return {
      {"normal", 0, of_one([](PhiloxKey key, uint64_t i) { return static_cast<double>(normal(key, 0, i)); })},
      {"uniform", 0.5, of_one([](PhiloxKey key, uint64_t i) { return uniform_at(key, i, 0); })},
      {"exponential", 1, of_one([](PhiloxKey key, uint64_t i) { return exponential_at(key, i, 0); })},
      {"share, small and skewed", 1.0 / 6, of_one([](PhiloxKey key, uint64_t i) { return beta_at(key, i, 1, 5); })},
      {"share, large", 0.8, of_one([](PhiloxKey key, uint64_t i) { return beta_at(key, i, 8, 2); })},
      {"share, texts of 20 to 256 tokens", 0.5,
       of_length(20, 256, [](PhiloxKey key, uint64_t i, double length) { return length * beta_at(key, i, 4, 4); })},
      {"answers, 1 to 12 a text, 60 % right", 0.6, of_length(1, 12, answers(6, 4))},
      {"answers, 1 to 6 a text, 80 % right", 0.8, of_length(1, 6, answers(8, 2))},
      {"answers, 1 to 6 a text, 95 % right", 0.95, of_length(1, 6, answers(19, 1))},
  };
}

// In how many of `samples` samples an interval contains the truth.
template <class Make>
double coverage(const Source& source, int64_t n, int samples, const Make& make) {
  int inside = 0;
  for (int s = 0; s < samples; ++s) {
    const Sample sample = source.draw(n, fold({.seed = 11, .step = static_cast<uint64_t>(s)}));
    const Interval interval = make(sample);
    inside += interval.low <= source.truth && source.truth <= interval.high ? 1 : 0;
  }
  return static_cast<double>(inside) / samples;
}

double ratio_of(const Sample& sample, std::span<const int64_t> picked) {
  double sum = 0, count = 0;
  for (const int64_t i : picked) {
    sum += sample.sums[static_cast<size_t>(i)];
    count += sample.counts[static_cast<size_t>(i)];
  }
  return sum / count;
}

Interval percentiles_of(const Sample& sample) {
  return percentile_interval(std::ssize(sample.sums),
                             [&](std::span<const int64_t> picked) { return ratio_of(sample, picked); },
                             {.rounds = 400});
}

// What "95 %" promises, at the fewest items that have an interval: 93 to 97 of 100 samples. With 2000 samples the
// measured share itself has a standard error of half a point.
TEST(Coverage, OfABootstrapTIntervalIsWhatItPromises) {
  constexpr int kSamples = 2000;
  const RatioBootstrap bootstrap(kMinItems, {.rounds = 400});
  for (const Source& source : sources()) {
    const double found = coverage(source, kMinItems, kSamples,
                                  [&](const Sample& sample) { return bootstrap(sample.sums, sample.counts); });
    EXPECT_GE(found, 0.93) << source.name;
    EXPECT_LE(found, 0.97) << source.name;
  }
}

// Any score, its standard errors by the jackknife: here the same ratio, as BLEU is one.
TEST(Coverage, OfAnyScoreIsWhatItPromises) {
  for (const Source& source : sources()) {
    const double found = coverage(source, kMinItems, 500, [](const Sample& sample) {
      return bootstrap_interval(std::ssize(sample.sums),
                                [&](std::span<const int64_t> picked) { return ratio_of(sample, picked); },
                                {.rounds = 300});
    });
    EXPECT_GE(found, 0.92) << source.name;
  }
}

// Percentiles are too narrow for few items: why they are used for medians alone, and why few texts have no interval.
TEST(Coverage, OfPercentilesIsTooSmallForFewItems) {
  const Source skewed = sources()[2];
  EXPECT_LT(coverage(skewed, 5, 500, percentiles_of), 0.82);
  EXPECT_LT(coverage(skewed, 20, 1000, percentiles_of), 0.93);
}

// Summed over all outcomes of n trials, without sampling: at least 95 % for every probability.
TEST(Coverage, OfAnExactIntervalIsNeverSmaller) {
  for (const int64_t n : {1, 5, 20, 60}) {
    std::vector<Interval> of_seen;
    for (int64_t k = 0; k <= n; ++k) of_seen.push_back(exact_interval(k, n));
    for (const double p : {0.02, 0.1, 0.3, 0.5, 0.77, 0.95}) {
      double inside = 0, chance = std::pow(1 - p, static_cast<double>(n));
      for (int64_t k = 0; k <= n; ++k) {
        if (of_seen[static_cast<size_t>(k)].low <= p && p <= of_seen[static_cast<size_t>(k)].high) inside += chance;
        chance *= p / (1 - p) * static_cast<double>(n - k) / static_cast<double>(k + 1);
      }
      EXPECT_GE(inside, 0.95 - 1e-9) << n << " trials, " << p;
    }
  }
  const Interval known = exact_interval(7, 20);  // the tables of Clopper and Pearson
  EXPECT_NEAR(known.low, 0.1539, 1e-4);
  EXPECT_NEAR(known.high, 0.5922, 1e-4);
  EXPECT_NEAR(exact_interval(0, 20).high, 1 - std::pow(0.025, 1.0 / 20), 1e-9);
  EXPECT_EQ(exact_interval(20, 20).high, 1);
}

TEST(StudentT, IsTheTablesAndTheirContinuation) {
  EXPECT_NEAR(student_t(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t(19), 2.093, 1e-3);
  EXPECT_NEAR(student_t(31), 2.0395, 1e-3);
  EXPECT_NEAR(student_t(60), 2.0003, 1e-3);
  EXPECT_NEAR(student_t(100'000), 1.95998, 1e-4);
}

// qkv test --long prints the table of docs/looking.md: measured coverage of both intervals.
TEST(Coverage, DISABLED_Table) {
  for (const int64_t n : {5, 8, 12, 20, 40, 100}) {
    const RatioBootstrap bootstrap(n);
    for (const Source& source : sources()) {
      std::printf("%3lld  %-36s percentiles %.3f  bootstrap-t %.3f\n", static_cast<long long>(n), source.name,
                  coverage(source, n, 4000, percentiles_of),
                  coverage(source, n, 4000, [&](const Sample& s) { return bootstrap(s.sums, s.counts); }));
    }
  }
}

}  // namespace
}  // namespace qkv

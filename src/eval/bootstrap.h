// 95 % confidence intervals of what is measured over a sample of items: texts, sentences, lines.
//
//   bootstrap-t   t* = (score of a resample - score) / (standard error within that resample); the interval is
//                 [score - q(0.975) se, score - q(0.025) se] with the quantiles q of t*   (Efron 1979, Hall 1988)
//   exact         of independent outcomes that are 0 or 1: Clopper and Pearson 1934
//
// The percentiles of resampled scores themselves are too narrow for few items: with 5 items they contain the true mean
// in fewer than 80 % of samples instead of 95 %. tests/eval/bootstrap_test.cpp measures both. Fewer than kMinItems
// items have no interval. Everything is a function of the seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"

namespace qkv {

inline constexpr int64_t kMinItems = 20;

struct BootstrapOptions {
  int rounds = 1000;
  double confidence = 0.95;
  uint64_t seed = 0;
};

struct Interval {
  double low = 0, high = 0;
};

// Bootstrap-t of a ratio of sums, such as a mean over texts of unequal length. Its resamples are drawn once and serve
// any number of ratios over the same items. More than 256 items are resampled in 256 groups.
class RatioBootstrap {
 public:
  explicit RatioBootstrap(int64_t items, BootstrapOptions options = {});

  // Of sum(sums) / sum(counts); one of each per item, counts above 0.
  Interval operator()(std::span<const double> sums, std::span<const double> counts) const;

 private:
  size_t items_, groups_;
  BootstrapOptions options_;
  std::vector<uint32_t> drawn_;  // [round, group]
};

// Bootstrap-t of any score; its standard errors are those of the jackknife. score(picked) gets indices of items. More
// than 256 items are resampled in 256 groups.
Interval bootstrap_interval(int64_t items, FunctionRef<double(std::span<const int64_t> picked)> score,
                            BootstrapOptions options = {});

// The percentiles of resampled scores: for medians, of which the jackknife has no standard error.
Interval percentile_interval(int64_t items, FunctionRef<double(std::span<const int64_t> picked)> score,
                             BootstrapOptions options = {});

// The exact interval of the probability of an outcome that was seen in `seen` of `n` independent trials: it contains
// the true one in at least this share of samples.
Interval exact_interval(int64_t seen, int64_t n, double confidence = 0.95);

// The central interval that contains this share of the scores.
Interval central_interval(std::span<const double> scores, double confidence = 0.95);

// The 97.5 % quantile of Student's t.
double student_t(int64_t freedom);

}  // namespace qkv

#include "eval/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace qkv {
namespace {

// More items are pooled in so many groups, item i in group i mod kMaxGroups: then memory and time are bounded.
constexpr int64_t kMaxGroups = 256;
// Least standard error of a resample, relative to that of the sample: a resample of equal items has none, and t* would
// be infinite. Measured: 0.1 makes intervals of rare outcomes twice as wide, 0.4 makes them too narrow.
constexpr double kLeastError = 0.3;

// The quantile q of the sorted values, with linear interpolation.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

void check(int64_t items, const BootstrapOptions& options) {
  QKV_CHECK(items > 0 && items <= UINT32_MAX, "bootstrap: ", items, " items, but 1 to ", UINT32_MAX,
            " can be drawn from", Hint("is the test set empty?"));
  QKV_CHECK(options.rounds > 0 && options.confidence > 0 && options.confidence < 1, "bootstrap: ", options.rounds,
            " rounds at confidence ", options.confidence, ", but rounds must be positive and confidence in (0, 1)",
            Hint("1000 rounds at 0.95 is the habit"));
}

// Item indices of each round, with replacement.
std::vector<uint32_t> draws(int64_t items, const BootstrapOptions& options) {
  const PhiloxKey key = fold({.seed = options.seed});
  std::vector<uint32_t> drawn;
  drawn.reserve(static_cast<size_t>(options.rounds) * static_cast<size_t>(items));
  for (int round = 0; round < options.rounds; ++round) {
    for (uint64_t i = 0; i < static_cast<uint64_t>(items); ++i) {
      const uint64_t word = random_u32(key, static_cast<uint64_t>(round), i);
      drawn.push_back(static_cast<uint32_t>(word * static_cast<uint64_t>(items) >> 32));
    }
  }
  return drawn;
}

// From t* of each round, in any order.
Interval from_t(std::vector<double> t, double score, double error, double confidence) {
  std::sort(t.begin(), t.end());
  const double tail = (1.0 - confidence) / 2.0;
  return {.low = std::min(score, score - quantile(t, 1.0 - tail) * error),
          .high = std::max(score, score - quantile(t, tail) * error)};
}

// The regularised incomplete beta function, by its continued fraction (Lentz).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  constexpr double kTiny = 1e-300;
  constexpr int kMaxTerms = 10'000;
  const auto nonzero = [&](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double fraction = 1, c = 1, d = 0;
  for (int i = 0; i < kMaxTerms; ++i) {
    const double m = i / 2;  // NOLINT(bugprone-integer-division): pairs of terms
    const double term = i == 0       ? 1
                        : i % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                     : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + term * d);
    c = nonzero(1 + term / c);
    fraction *= c * d;
    if (std::abs(1 - c * d) < 1e-14) break;
  }
  const double front = std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  return std::exp(front) * (fraction - 1) / a;
}

double beta_quantile(double a, double b, double q) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (incomplete_beta(a, b, middle) < q ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

RatioBootstrap::RatioBootstrap(int64_t items, BootstrapOptions options)
    : items_(static_cast<size_t>(items)), groups_(static_cast<size_t>(std::min(items, kMaxGroups))), options_(options) {
  check(items, options);
  drawn_ = draws(std::min(items, kMaxGroups), options);
}

// The standard error of a ratio r = S / C is that of its linearised items: sqrt(n / (n - 1) sum (s - r c)^2) / C.
Interval RatioBootstrap::operator()(std::span<const double> sums, std::span<const double> counts) const {
  QKV_ASSERT(sums.size() == items_ && counts.size() == items_, sums.size(), " sums and ", counts.size(), " counts of ",
             items_, " items");
  const double count = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double ratio = std::accumulate(sums.begin(), sums.end(), 0.0) / count;
  struct Group {  // e = s - r c, with the r of the whole sample
    double e, c, ee, ec, cc;
  };
  std::vector<Group> all(groups_);
  for (size_t i = 0; i < items_; ++i) {
    all[i % groups_].e += sums[i] - ratio * counts[i];
    all[i % groups_].c += counts[i];
  }
  double squares = 0;
  for (Group& g : all) {
    g.ee = g.e * g.e;
    g.ec = g.e * g.c;
    g.cc = g.c * g.c;
    squares += g.ee;
  }
  const double scale = groups_ > 1 ? static_cast<double>(groups_) / static_cast<double>(groups_ - 1) : 0;
  const double error = std::sqrt(scale * squares) / count;
  if (!(error > 1e-12 * std::abs(ratio))) return {.low = ratio, .high = ratio};
  std::vector<double> t;
  for (size_t first = 0; first < drawn_.size(); first += groups_) {
    Group sum{};
    for (size_t i = first; i < first + groups_; ++i) {
      const Group& g = all[drawn_[i]];
      sum.e += g.e;
      sum.c += g.c;
      sum.ee += g.ee;
      sum.ec += g.ec;
      sum.cc += g.cc;
    }
    const double moved = sum.e / sum.c;  // the resample's ratio minus the sample's
    const double within = std::max(0.0, sum.ee - 2 * moved * sum.ec + moved * moved * sum.cc);
    t.push_back(moved / std::max(std::sqrt(scale * within) / sum.c, kLeastError * error));
  }
  return from_t(std::move(t), ratio, error, options_.confidence);
}

Interval bootstrap_interval(int64_t items, FunctionRef<double(std::span<const int64_t> picked)> score,
                            BootstrapOptions options) {
  check(items, options);
  const int64_t groups = std::min(items, kMaxGroups);
  std::vector<int64_t> picked;
  const auto add = [&](int64_t group) {
    for (int64_t i = group; i < items; i += groups) picked.push_back(i);
  };
  const auto all_but = [&](int64_t left_out) {
    picked.clear();
    for (int64_t g = 0; g < groups; ++g) {
      if (g != left_out) add(g);
    }
    return score(picked);
  };
  const double whole = all_but(groups);
  if (groups == 1) return {.low = whole, .high = whole};
  const auto n = static_cast<double>(groups);
  std::vector<double> influence;  // jackknife
  for (int64_t g = 0; g < groups; ++g) influence.push_back(all_but(g));
  const double mean = std::accumulate(influence.begin(), influence.end(), 0.0) / n;
  double squares = 0;
  for (double& v : influence) {
    v = (n - 1) * (mean - v);
    squares += v * v;
  }
  const double error = std::sqrt(squares / (n * (n - 1)));
  if (!(error > 1e-12 * std::abs(whole))) return {.low = whole, .high = whole};
  const std::vector<uint32_t> drawn = draws(groups, options);
  std::vector<double> t;
  for (size_t first = 0; first < drawn.size(); first += static_cast<size_t>(groups)) {
    picked.clear();
    double sum = 0, sum_of_squares = 0;
    for (size_t i = first; i < first + static_cast<size_t>(groups); ++i) {
      add(drawn[i]);
      sum += influence[drawn[i]];
      sum_of_squares += influence[drawn[i]] * influence[drawn[i]];
    }
    const double within = std::max(0.0, sum_of_squares - sum * sum / n);
    t.push_back((score(picked) - whole) / std::max(std::sqrt(within / (n * (n - 1))), kLeastError * error));
  }
  return from_t(std::move(t), whole, error, options.confidence);
}

Interval percentile_interval(int64_t items, FunctionRef<double(std::span<const int64_t> picked)> score,
                             BootstrapOptions options) {
  check(items, options);
  const std::vector<uint32_t> drawn = draws(items, options);
  std::vector<double> scores;
  for (size_t first = 0; first < drawn.size(); first += static_cast<size_t>(items)) {
    const std::vector<int64_t> picked(drawn.begin() + static_cast<ptrdiff_t>(first),
                                      drawn.begin() + static_cast<ptrdiff_t>(first) + items);
    scores.push_back(score(picked));
  }
  return central_interval(scores, options.confidence);
}

Interval exact_interval(int64_t seen, int64_t n, double confidence) {
  QKV_ASSERT(n > 0 && seen >= 0 && seen <= n, seen, " of ", n);
  const double tail = (1.0 - confidence) / 2.0;
  const auto x = static_cast<double>(seen), rest = static_cast<double>(n - seen);
  return {.low = seen == 0 ? 0 : beta_quantile(x, rest + 1, tail),
          .high = seen == n ? 1 : beta_quantile(x + 1, rest, 1 - tail)};
}

Interval central_interval(std::span<const double> scores, double confidence) {
  QKV_ASSERT(!scores.empty(), "the middle of no scores");
  std::vector<double> sorted(scores.begin(), scores.end());
  std::sort(sorted.begin(), sorted.end());
  const double tail = (1.0 - confidence) / 2.0;
  return {.low = quantile(sorted, tail), .high = quantile(sorted, 1.0 - tail)};
}

double student_t(int64_t freedom) {
  QKV_ASSERT(freedom > 0, "Student's t with ", freedom, " degrees of freedom");
  static constexpr std::array<double, 30> kTable{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (freedom <= std::ssize(kTable)) return kTable[static_cast<size_t>(freedom - 1)];
  const double z = 1.959963985, v = static_cast<double>(freedom);  // Cornish-Fisher
  return z + (z * z * z + z) / (4 * v) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * v * v);
}

}  // namespace qkv

#include "inspect/report/estimate.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace qkv {
namespace {

bool is_outcome(const TextSum& text) {
  return text.count == 1 && (text.sum == 0 || text.sum == 1);
}

// Makes estimates of sums over the same number of texts; resamples are drawn anew where other texts have counts.
class Estimator {
 public:
  Estimator(uint64_t seed, Quantity quantity) : seed_(seed), quantity_(quantity) {}

  Estimate operator()(std::span<const TextSum> texts) {
    std::vector<double> sums, counts;
    TextSum total;
    bool outcomes = quantity_ == Quantity::outcome;
    for (const TextSum& text : texts) {
      if (text.count == 0) continue;
      sums.push_back(text.sum);
      counts.push_back(static_cast<double>(text.count));
      total += text;
      outcomes = outcomes && is_outcome(text);
    }
    const auto n = std::ssize(sums);
    Estimate made{.n = total.count, .texts = n};
    if (n == 0) return made;
    made.mean = made.low = made.high = total.sum / static_cast<double>(total.count);
    if (n < 2) return made;
    const Interval interval = interval_of(sums, counts, made.mean, outcomes);
    made.low = interval.low;
    made.high = interval.high;
    return made;
  }

 private:
  Interval interval_of(std::span<const double> sums, std::span<const double> counts, double mean, bool outcomes) {
    const auto n = std::ssize(sums);
    const bool all_the_same = quantity_ == Quantity::outcome && (mean == 0 || mean == 1);
    if (outcomes || all_the_same) return exact_interval(static_cast<int64_t>(mean * static_cast<double>(n) + 0.5), n);
    if (!drawn_ || items_ != n) {
      drawn_.emplace(n, BootstrapOptions{.seed = seed_});
      items_ = n;
    }
    Interval interval = (*drawn_)(sums, counts);
    if (quantity_ != Quantity::number) {
      interval.low = std::max(interval.low, std::min(0.0, mean));
      interval.high = std::min(interval.high, std::max(1.0, mean));
    }
    return interval;
  }

  uint64_t seed_;
  Quantity quantity_;
  int64_t items_ = 0;
  std::optional<RatioBootstrap> drawn_;
};

}  // namespace

Estimate estimate(std::span<const TextSum> texts, uint64_t seed, Quantity quantity) {
  return Estimator(seed, quantity)(texts);
}

std::vector<Estimate> estimates(std::span<const TextSum> all, size_t texts, uint64_t seed, Quantity quantity) {
  QKV_ASSERT(texts > 0 && all.size() % texts == 0, all.size(), " sums of ", texts, " texts each");
  Estimator estimator(seed, quantity);
  std::vector<Estimate> made;
  for (size_t first = 0; first < all.size(); first += texts) made.push_back(estimator(all.subspan(first, texts)));
  return made;
}

Estimate paired_difference(std::span<const TextSum> a, std::span<const TextSum> b, uint64_t seed) {
  QKV_ASSERT(a.size() == b.size(), a.size(), " texts against ", b.size());
  std::vector<TextSum> differences;
  for (size_t i = 0; i < a.size(); ++i) {
    QKV_ASSERT(a[i].count == b[i].count, "text ", i, " was counted ", a[i].count, " and ", b[i].count, " times");
    differences.push_back({b[i].sum - a[i].sum, a[i].count});
  }
  return estimate(differences, seed);
}

Estimate paired_ratios(std::span<const TextSum> a, std::span<const TextSum> b, uint64_t seed) {
  QKV_ASSERT(a.size() == b.size(), a.size(), " texts against ", b.size());
  const auto difference = [&](const auto& texts) {
    TextSum of_a, of_b;
    for (const auto t : texts) {
      of_a += a[static_cast<size_t>(t)];
      of_b += b[static_cast<size_t>(t)];
    }
    const auto mean = [](const TextSum& all) { return all.count > 0 ? all.sum / static_cast<double>(all.count) : 0; };
    return mean(of_b) - mean(of_a);
  };
  std::vector<int64_t> all(a.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  Estimate made{.n = std::ssize(a), .texts = std::ssize(a)};
  if (a.empty()) return made;
  made.mean = made.low = made.high = difference(all);
  const Interval interval = bootstrap_interval(std::ssize(a), difference, {.seed = seed});
  made.low = interval.low;
  made.high = interval.high;
  return made;
}

}  // namespace qkv

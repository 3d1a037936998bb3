#include "eval/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace qkv {
namespace {

// The quantile q of the sorted values, with linear interpolation.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

}  // namespace

Interval bootstrap_interval(int64_t items, FunctionRef<double(std::span<const int64_t> picked)> score,
                            BootstrapOptions options) {
  QKV_CHECK(items > 0 && items <= UINT32_MAX, "bootstrap: ", items, " items, but 1 to ", UINT32_MAX,
            " can be drawn from", Hint("is the test set empty?"));
  QKV_CHECK(options.rounds > 0 && options.confidence > 0 && options.confidence < 1, "bootstrap: ", options.rounds,
            " rounds at confidence ", options.confidence, ", but rounds must be positive and confidence in (0, 1)",
            Hint("1000 rounds at 0.95 is the habit"));
  const PhiloxKey key = fold({.seed = options.seed});
  std::vector<int64_t> picked(static_cast<size_t>(items));
  std::vector<double> scores;
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < picked.size(); ++i) {
      const uint64_t word = random_u32(key, static_cast<uint64_t>(round), i);
      picked[i] = static_cast<int64_t>(word * static_cast<uint64_t>(items) >> 32);
    }
    scores.push_back(score(picked));
  }
  return central_interval(scores, options.confidence);
}

Interval central_interval(std::span<const double> scores, double confidence) {
  QKV_ASSERT(!scores.empty(), "the middle of no scores");
  std::vector<double> sorted(scores.begin(), scores.end());
  std::sort(sorted.begin(), sorted.end());
  const double tail = (1.0 - confidence) / 2.0;
  return {.low = quantile(sorted, tail), .high = quantile(sorted, 1.0 - tail)};
}

}  // namespace qkv

#include "inspect/report/estimate.h"

#include "base/error.h"
#include "eval/bootstrap.h"

namespace qkv {
namespace {

double mean_of(const TextSum& all) {
  return all.count > 0 ? all.sum / static_cast<double>(all.count) : 0;
}

// `value(picked)` over the texts that have counts, and its interval.
template <class Value>
Estimate with_interval(const std::vector<size_t>& counted, int64_t n, uint64_t seed, const Value& value) {
  Estimate made{.n = n, .texts = std::ssize(counted)};
  if (counted.empty()) return made;
  made.mean = made.low = made.high = value([&](size_t i) { return counted[i]; });
  if (counted.size() < 2) return made;
  const Interval interval =
      bootstrap_interval(std::ssize(counted),
                         [&](std::span<const int64_t> picked) {
                           return value([&](size_t i) { return counted[static_cast<size_t>(picked[i])]; });
                         },
                         {.seed = seed});
  made.low = interval.low;
  made.high = interval.high;
  return made;
}

}  // namespace

Estimate estimate(std::span<const TextSum> texts, uint64_t seed) {
  std::vector<size_t> counted;
  int64_t n = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].count > 0) counted.push_back(i);
    n += texts[i].count;
  }
  return with_interval(counted, n, seed, [&](const auto& at) {
    TextSum all;
    for (size_t i = 0; i < counted.size(); ++i) all += texts[at(i)];
    return mean_of(all);
  });
}

std::vector<Estimate> estimates(std::span<const TextSum> all, size_t texts, uint64_t seed) {
  QKV_ASSERT(texts > 0 && all.size() % texts == 0, all.size(), " sums of ", texts, " texts each");
  std::vector<Estimate> made;
  std::vector<std::vector<uint32_t>> draws;  // for the texts in drawn_for
  std::vector<size_t> drawn_for, counted;
  for (size_t first = 0; first < all.size(); first += texts) {
    const std::span<const TextSum> one = all.subspan(first, texts);
    Estimate e;
    TextSum total;
    counted.clear();
    for (size_t i = 0; i < texts; ++i) {
      if (one[i].count == 0) continue;
      counted.push_back(i);
      total += one[i];
    }
    e.n = total.count;
    e.texts = std::ssize(counted);
    e.mean = e.low = e.high = mean_of(total);
    if (counted.size() > 1) {
      if (counted != drawn_for) {
        draws.clear();
        drawn_for = counted;
        bootstrap_interval(std::ssize(counted),
                           [&](std::span<const int64_t> picked) {
                             auto& row = draws.emplace_back();
                             for (const int64_t p : picked)
                               row.push_back(static_cast<uint32_t>(counted[static_cast<size_t>(p)]));
                             return 0.0;
                           },
                           {.seed = seed});
      }
      std::vector<double> means;
      for (const std::vector<uint32_t>& row : draws) {
        TextSum sum;
        for (const uint32_t i : row) sum += one[i];
        means.push_back(mean_of(sum));
      }
      const Interval interval = central_interval(means);
      e.low = interval.low;
      e.high = interval.high;
    }
    made.push_back(e);
  }
  return made;
}

Estimate paired_difference(std::span<const TextSum> a, std::span<const TextSum> b, uint64_t seed) {
  QKV_ASSERT(a.size() == b.size(), a.size(), " texts against ", b.size());
  std::vector<size_t> counted;
  int64_t n = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    QKV_ASSERT(a[i].count == b[i].count, "text ", i, " was counted ", a[i].count, " and ", b[i].count, " times");
    if (a[i].count > 0) counted.push_back(i);
    n += a[i].count;
  }
  return with_interval(counted, n, seed, [&](const auto& at) {
    TextSum without, with;
    for (size_t i = 0; i < counted.size(); ++i) {
      without += a[at(i)];
      with += b[at(i)];
    }
    return mean_of(with) - mean_of(without);
  });
}

}  // namespace qkv

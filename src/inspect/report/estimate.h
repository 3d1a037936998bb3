// A mean over texts with its 95 % bootstrap interval and sample size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

struct Estimate {
  double mean = 0;
  double low = 0, high = 0;  // 95 %, bootstrap over texts; equal to the mean if there is only one text
  int64_t n = 0;             // what was counted: rows, arcs, mentions
  int64_t texts = 0;         // texts with a count above 0

  bool has_interval() const { return texts >= kFewestTexts; }
  static constexpr int64_t kFewestTexts = 5;  // fewer texts have no meaningful interval
};

// Sum and count over one text.
struct TextSum {
  double sum = 0;
  int64_t count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  TextSum& operator+=(const TextSum& other) {
    sum += other.sum;
    count += other.count;
    return *this;
  }
};

// Sum of sums over sum of counts; texts without a count are left out.
Estimate estimate(std::span<const TextSum> texts, uint64_t seed = 0);

// Many estimates over `texts` texts each: the same results as one by one, but bootstrap draws are shared by all that
// have counts in the same texts.
std::vector<Estimate> estimates(std::span<const TextSum> all, size_t texts, uint64_t seed = 0);

// The difference b - a of two measurements of the same texts, by paired bootstrap.
Estimate paired_difference(std::span<const TextSum> a, std::span<const TextSum> b, uint64_t seed = 0);

}  // namespace qkv

// A mean over texts with its 95 % interval (eval/bootstrap.h) and sample size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/bootstrap.h"

namespace qkv {

struct Estimate {
  double mean = 0;
  double low = 0, high = 0;  // 95 %, over texts; equal to the mean if there is only one text
  int64_t n = 0;             // what was counted: rows, arcs, mentions
  int64_t texts = 0;         // texts with a count above 0

  bool has_interval() const { return texts >= kFewestTexts; }
  static constexpr int64_t kFewestTexts = kMinItems;  // fewer texts have no meaningful interval
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

// What the values are. The interval of a share stays within 0 and 1. Outcomes are 0 or 1: their interval is exact where
// each text has one of them, and where all are the same it is that of as many outcomes as there are texts.
enum class Quantity : uint8_t { number, share, outcome };

// Sum of sums over sum of counts; texts without a count are left out.
Estimate estimate(std::span<const TextSum> texts, uint64_t seed = 0, Quantity quantity = Quantity::number);

// Many estimates over `texts` texts each: the same results as one by one, but resamples are shared by all that have
// counts in the same texts.
std::vector<Estimate> estimates(std::span<const TextSum> all, size_t texts, uint64_t seed = 0,
                                Quantity quantity = Quantity::number);

// The difference b - a of two measurements of the same texts, paired: each resample has the same texts of both.
Estimate paired_difference(std::span<const TextSum> a, std::span<const TextSum> b, uint64_t seed = 0);
// The same where the two count different things in a text, as alignments with different numbers of links do.
Estimate paired_ratios(std::span<const TextSum> a, std::span<const TextSum> b, uint64_t seed = 0);

}  // namespace qkv

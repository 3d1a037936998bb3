// A mean over many texts, with how much of it is chance: never a number without its n.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

struct Estimate {
  double mean = 0;
  double low = 0, high = 0;  // 95 %: the bootstrap's over texts. The mean itself if there is only one
  int64_t n = 0;             // what was counted: rows, arcs, mentions
  int64_t texts = 0;         // that had any

  bool has_interval() const { return texts >= kFewestTexts; }
  static constexpr int64_t kFewestTexts = 5;  // fewer say nothing about others
};

// Sum and count of one text.
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

// Many at once, each with so many texts: the same as one by one, but the bootstrap's draws are made once for all that
// count the same texts.
std::vector<Estimate> estimates(std::span<const TextSum> all, size_t texts, uint64_t seed = 0);

// Of a difference that each text has twice, with and without: b - a, text by text the same draws (the paired
// bootstrap).
Estimate paired_difference(std::span<const TextSum> a, std::span<const TextSum> b, uint64_t seed = 0);

}  // namespace qkv

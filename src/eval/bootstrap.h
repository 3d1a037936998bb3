// How far a score would move on another test set of the same kind: the bootstrap (Efron, 1979; for BLEU: Koehn, EMNLP
// 2004). Items are drawn with replacement, the score is computed anew, and the middle share of all such scores is the
// interval. The draws are a pure function of the seed.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"

namespace qkv {

struct BootstrapOptions {
  int rounds = 1000;
  double confidence = 0.95;
  uint64_t seed = 0;
};

struct Interval {
  double low = 0, high = 0;
};

// score(picked) gets as many item numbers as there are items, some several times, some never.
Interval bootstrap_interval(int64_t items, FunctionRef<double(std::span<const int64_t> picked)> score,
                            BootstrapOptions options = {});

// The interval that holds the middle share of these.
Interval middle_of(std::span<const double> scores, double confidence = 0.95);

}  // namespace qkv

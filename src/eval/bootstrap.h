// Bootstrap confidence intervals (Efron, 1979; for BLEU: Koehn, EMNLP 2004): items are resampled with replacement, the
// score is computed for each sample, and the central share of these scores is the interval. Deterministic in the seed.
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

// score(picked) gets `items` item indices, drawn with replacement.
Interval bootstrap_interval(int64_t items, FunctionRef<double(std::span<const int64_t> picked)> score,
                            BootstrapOptions options = {});

// The central interval that contains this share of the scores.
Interval central_interval(std::span<const double> scores, double confidence = 0.95);

}  // namespace qkv

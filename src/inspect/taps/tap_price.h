// What looking costs: the same forward pass without a probe and with several, taken in turns in one run, so that
// whatever else the machine does meets all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/engine.h"
#include "inspect/report/estimate.h"
#include "model/model.h"

namespace qkv {

struct TapPrice {
  std::string what;
  double seconds = 0;      // of a pass, the fastest
  Estimate ratio;          // of medians, to the pass nobody looks at; n: rounds
  bool same_bits = false;  // its logits are that pass' logits
};

struct PriceOptions {
  Precision precision = Precision::f32();
  int64_t tokens = 256;
  int64_t rounds = 20;
  std::function<bool(int64_t round)> finished;  // false ends it there
};

std::vector<TapPrice> tap_prices(const Model& model, const Engine& engine, const PriceOptions& options);

}  // namespace qkv

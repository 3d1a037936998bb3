// The cost of probes: the same forward pass without a probe and with several kinds, timed in turns within one run so
// that other load on the machine affects all of them alike.
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
  double seconds = 0;      // of the fastest pass
  Estimate ratio;          // of medians, to the pass without a probe; n: rounds
  bool same_bits = false;  // its logits equal those of the pass without a probe
};

struct PriceOptions {
  Precision precision = Precision::f32();
  int64_t tokens = 256;
  int64_t rounds = 20;
  std::function<bool(int64_t round)> finished;  // return false to stop
};

std::vector<TapPrice> tap_prices(const Model& model, const Engine& engine, const PriceOptions& options);

}  // namespace qkv

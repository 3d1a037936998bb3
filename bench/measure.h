// One row of the report: an op, its limit and other libraries, measured in turns.
#pragma once

#include <string>
#include <vector>

#include "hot_ops.h"
#include "limits.h"

namespace qkv::bench {

struct BesideRates {
  std::string name;
  std::vector<double> rates;
};

struct Row {
  std::string name;
  std::string dtype;
  std::string size;
  bool full = true;   // the real size, not a smaller one because the op is slow
  double amount = 0;  // operations or bytes of one call
  Limit limit_kind = Limit::read_eight;
  std::string note;
  std::vector<double> ours, limit;  // operations or bytes per second, one per round
  std::vector<BesideRates> beside;

  double switches = 0;  // preemptions per second, in the calmest round

  double share() const { return best_of(ours) / best_of(limit); }
  double ratio(const BesideRates& other) const { return best_of(ours) / best_of(other.rates); }
};

// Takes about so many seconds: less time means a smaller size and fewer rounds.
Row measure(const HotOp& op, Limits& limits, double seconds);

// How often one of our threads was preempted so far.
double preemptions();
// Peak memory of this process so far, in bytes.
double peak_memory();
constexpr double kCalmPreemptions = 25;  // preemptions per second, all threads together; an idle machine has a few

// Reads every limit of this CPU a few times, in turns.
void read_limits(Limits& limits);

}  // namespace qkv::bench

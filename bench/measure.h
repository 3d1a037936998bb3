// One row of the report: an op, its limit and whoever stands beside it, taken in turns.
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
  std::vector<double> ours, limit;  // operations or bytes a second, one per round
  std::vector<BesideRates> beside;

  double switches = 0;  // how often a second other work took a CPU from us, in the calmest round

  double share() const { return best_of(ours) / best_of(limit); }
  double ratio(const BesideRates& other) const { return best_of(ours) / best_of(other.rates); }
};

// In about so many seconds: few mean a smaller size and fewer rounds.
Row measure(const HotOp& op, Limits& limits, double seconds);

// How often the system has put one of our threads off its CPU so far.
double times_put_off();
// The most bytes this process had in memory so far.
double peak_memory();
constexpr double kCalm = 25;  // times a second, all threads together: on a machine of our own it is a few

// Some readings of every limit this CPU has, in turns.
void read_limits(Limits& limits);

}  // namespace qkv::bench

// A model at work, as llama-bench measures one: reading a prompt, and writing one token after the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "limits.h"
#include "pass_cost.h"
#include "timed_kernels.h"

namespace qkv::bench {

struct RunsWanted {
  int64_t prompt = 512, tokens = 128;
  std::vector<int64_t> batches{1, 8, 32};
  int64_t rounds = 3;
};

// One kind of run. The readings of the limits stand for each run: they are taken while it pauses.
struct RunRow {
  std::string name;
  int64_t tokens = 0;  // of one run
  Cost cost;           // of one run
  std::vector<double> seconds, read, peak;
  std::vector<KernelTime> kernels;  // of all runs

  double tokens_best() const;
  double tokens_median() const;
  // Medians over the runs of what was reached, as a share of the limits read during the same run.
  double share_of_read() const;
  double share_of_peak() const;
  double total_seconds() const;
};

struct ModelRuns {
  std::vector<RunRow> rows;
  Limit peak = Limit::f32_plain;
};

// `told` hears what is measured now, and how many of how many runs are done.
using Told = std::function<void(const std::string& what, int64_t done, int64_t of)>;
ModelRuns measure_runs(Runner& runner, Limits& limits, const RunsWanted& wanted, const Told& told);

}  // namespace qkv::bench

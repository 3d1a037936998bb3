// Prefill and decode speed of a model, as llama-bench measures them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "limits.h"
#include "pass_cost.h"
#include "timed_kernels.h"

namespace qkv::bench {

struct RunsWanted {
  int64_t prompt = 512, prompts = 1, tokens = 128;  // prompts: so many in one pass
  std::vector<int64_t> batches{1, 8, 32};
  int64_t rounds = 3;
};

// One kind of run. `read` and `peak` are the limits measured during each run.
struct RunRow {
  std::string name;
  int64_t tokens = 0;  // of one run
  Cost cost;           // of one run
  std::vector<double> seconds, read, peak;
  std::vector<KernelTime> kernels;  // of all runs, or of the one that was timed
  double timed_seconds = 0;         // of that one; 0: all were

  double tokens_best() const;
  double tokens_median() const;
  // Median over the runs of the share of the limits read during the same run.
  double share_of_read() const;
  double share_of_peak() const;
  double total_seconds() const;  // of what `kernels` are a part of
};

struct ModelRuns {
  std::vector<RunRow> rows;
  Limit peak = Limit::f32_plain;
};

// `told` is called with what is being measured and the progress.
using Told = std::function<void(const std::string& what, int64_t done, int64_t of)>;
ModelRuns measure_runs(Runner& runner, Limits& limits, const RunsWanted& wanted, const Told& told);

}  // namespace qkv::bench

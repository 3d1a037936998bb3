// The requests of `bench serve` through the Scheduler alone.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "infer/scheduler.h"
#include "open/open_model.h"

namespace qkv::bench {

struct Asked {
  std::vector<int32_t> prompt;
  int64_t tokens = 0;
};

struct SchedulerRun {
  double seconds = 0, all_cpu = 0;  // of the whole process
  int64_t tokens = 0, passes = 0;
};

// Biases that keep a text from ending before its length.
std::map<int32_t, double> no_end(const ModelSpec& spec);

// All requests are there from the start. `context`: most tokens of a text.
SchedulerRun run_at_once(Scheduler& scheduler, const OpenModel& model, const std::vector<Asked>& requests,
                         int64_t context);

// So many callers, each of which submits its next request once its last one has ended, from a thread of their own: what
// clients of a server do.
SchedulerRun run_in_turn(Scheduler& scheduler, const OpenModel& model, const std::vector<Asked>& requests,
                         int64_t context, size_t callers);

}  // namespace qkv::bench

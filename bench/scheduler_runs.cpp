#include "scheduler_runs.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "bed.h"
#include "infer/text_choices.h"
#include "thread_times.h"

namespace qkv::bench {
namespace {

void submit_one(Scheduler& scheduler, const OpenModel& model, const Asked& asked, int64_t context,
                std::function<void(const WrittenText&)> on_end) {
  TextRequest request =
      text_request({.temperature = 0, .max_new = asked.tokens, .logit_bias = no_end(model.spec())}, model.defaults());
  request.options.prompt = asked.prompt;
  request.options.context = context;
  request.on_end = std::move(on_end);
  submit_text(scheduler, model.tokenizer(), std::move(request));
}

// What `run` takes, in time and passes.
template <class Run>
SchedulerRun measured(const Scheduler& scheduler, const Run& run) {
  SchedulerRun result;
  const int64_t before = scheduler.counts().passes;
  const double cpu = process_cpu_seconds();
  result.seconds = seconds_of([&] { run(result); });
  result.all_cpu = process_cpu_seconds() - cpu;
  result.passes = scheduler.counts().passes - before;
  return result;
}

}  // namespace

std::map<int32_t, double> no_end(const ModelSpec& spec) {
  std::map<int32_t, double> biases;
  for (const int32_t id : end_tokens({}, spec)) biases[id] = -100;
  return biases;
}

SchedulerRun run_at_once(Scheduler& scheduler, const OpenModel& model, const std::vector<Asked>& requests,
                         int64_t context) {
  return measured(scheduler, [&](SchedulerRun& result) {
    for (const Asked& asked : requests) {
      submit_one(scheduler, model, asked, context,
                 [&](const WrittenText& text) { result.tokens += std::ssize(text.tokens); });
    }
    scheduler.run();
  });
}

SchedulerRun run_in_turn(Scheduler& scheduler, const OpenModel& model, const std::vector<Asked>& requests,
                         int64_t context, size_t callers) {
  return measured(scheduler, [&](SchedulerRun& result) {
    std::mutex mutex;
    std::condition_variable changed;
    size_t free = std::min(callers, requests.size()), submitted = 0, ended = 0;
    std::thread asking([&] {
      for (const Asked& asked : requests) {
        {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return free > 0; });
          --free;
        }
        submit_one(scheduler, model, asked, context, [&](const WrittenText& text) {
          const std::lock_guard lock(mutex);
          result.tokens += std::ssize(text.tokens);
          ++ended;
          ++free;
          changed.notify_all();
        });
        const std::lock_guard lock(mutex);
        ++submitted;
        changed.notify_all();
      }
    });
    while (true) {
      if (scheduler.step()) continue;
      std::unique_lock lock(mutex);
      if (ended == requests.size()) break;
      changed.wait(lock, [&] { return submitted > ended; });
    }
    asking.join();
  });
}

}  // namespace qkv::bench

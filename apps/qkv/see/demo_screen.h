// A training run as the demo shows it: loss, the latest sample, and the heads as they take on roles.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/training/train_run.h"

namespace qkv::app {

// On a terminal that can (base/terminal.h) a few lines are drawn again and again; elsewhere a line is printed now and then.
class DemoScreen {
 public:
  DemoScreen(bool chinese, int64_t steps);

  TrainObserver observer();  // valid as long as this is
  void finish();             // what stands there stays

 private:
  struct HeadNow {
    char letter = '.';  // of the strongest role
    double score = 0;
  };
  using Clock = std::chrono::steady_clock;

  void on_step(const StepReport& report, const TrainCounters& counters);
  void on_snapshot(const Snapshot& snapshot, const WatchPlan& plan);
  std::vector<std::string> lines() const;
  void draw();

  bool chinese_, terminal_;
  int64_t steps_, step_ = 0;
  double rate_ = 0, seconds_ = 0;  // tokens per second; of training so far
  std::vector<double> losses_;
  std::string sample_;
  std::vector<std::string> names_;  // of heads, L0H0
  std::vector<HeadNow> heads_;
  size_t drawn_ = 0;  // lines that stand there
  Clock::time_point last_{};
};

}  // namespace qkv::app

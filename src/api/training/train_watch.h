// qkv train --watch: snapshots of a run in RUN/watch, for qkv movie.
#pragma once

#include <filesystem>

#include "api/training/train_reports.h"
#include "inspect/watch/watcher.h"

namespace qkv {

class TrainWatch {
 public:
  // Texts that are held out where there are any; frequencies of the first tokens the run is trained on.
  TrainWatch(const std::filesystem::path& run, const Engine& engine, const Recipe& recipe, const Model& model,
             const TrainData& data);

  std::function<void(const Snapshot&, const WatchPlan&)> on_snapshot = {};  // told of each

  Probe* probe() { return &watcher_; }
  // A run that begins, or goes on from a checkpoint.
  void begin(const TrainCounters& counters);
  // After each step; true if it ended in a snapshot.
  bool after_step(const StepReport& report, const TrainCounters& counters);
  void wait() { folder_.wait(); }  // what was taken is on disk

  // Seconds of watching over those of training.
  double share(const TrainCounters& counters) const;
  Json log_line(const TrainCounters& counters) const;
  WatchEnd end(const TrainCounters& counters) const;

 private:
  void take(const TrainCounters& counters);

  Watcher watcher_;
  WatchFolder folder_;
};

}  // namespace qkv

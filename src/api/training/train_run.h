// A training run from its recipe to its last checkpoint: qkv::train, qkv train, and the demo.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/training/train_reports.h"
#include "api/training/train_watch.h"
#include "dist/comm.h"
#include "model/checkpoint/checkpoint.h"
#include "open/open_model.h"
#include "train/run_folder.h"

namespace qkv {

// Who wants to know what happens in a run.
struct TrainObserver {
  std::function<void(const StepReport&, const TrainCounters&)> on_step = {};
  std::function<void(const EvalResult&, bool best)> on_evaluation = {};
  std::function<void(const std::vector<std::string>&)> on_samples = {};
  std::function<void(const Snapshot&, const WatchPlan&)> on_snapshot = {};
};

struct TrainRunOptions {
  std::function<Json()> recipe;  // asked for by the first rank, unless the run goes on
  std::string named;             // the recipe, for error texts
  std::string out;
  kernels::DeviceChoice device = kernels::DeviceChoice::automatic;
  int threads = 0;
  bool resume = false, from_scratch = false;  // go on with a run; from its first step
  std::vector<std::string> set = {};          // keys to change in the recipe of a run that goes on
  bool dry = false, watch = false;
  std::function<bool()> stop = {};  // asked between steps; true saves and stops
  TrainScreen* screen = nullptr;
  TrainObserver observer = {};
};

// One rank's part of a run; the first one alone writes, and talks.
class TrainRun {
 public:
  TrainRun(TrainRunOptions options, Comm& comm);

  // Until it is done or asked to stop; then it is saved. Nothing where only the plan was wanted.
  std::optional<StopReason> run();
  const Recipe& recipe() const { return recipe_; }
  const TrainCounters& counters() { return trainer_->counters(); }

 private:
  Recipe open_run();
  Recipe resumed_recipe() const;
  void set_up();
  void prepare();
  void open_prepared();
  void open_model();
  void choose_device();
  void connect_gpus();
  void go_on();
  void forget();
  void tell(const StepReport& report);
  void tell(const EvalResult& result, bool best);
  void save(const TrainCounters& counters, bool best);

  TrainRunOptions options_;
  Comm& comm_;
  const Kernels* kernels_;
  std::optional<RunFolder> run_;  // of the first rank
  Recipe recipe_;
  std::filesystem::path prepared_;
  Checkpoint start_;
  std::optional<Engine> engine_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<TrainData> data_;
  Trainer::Memory memory_;
  std::unique_ptr<Comm> nccl_;  // where every rank has a GPU of its own
  std::optional<Trainer> trainer_;
  std::optional<TrainWatch> watch_;      // of the first rank
  std::optional<TrainReports> reports_;  // of the first rank
  TrainScreen nobody_, *screen_;
};

}  // namespace qkv

// A training run from its recipe to its last checkpoint: qkv train, and the demo.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/compute_options.h"
#include "dist/comm.h"
#include "make/train_view.h"
#include "make/train_watch.h"
#include "model/checkpoint/checkpoint.h"
#include "train/run_folder.h"

namespace qkv::app {

// Who wants to see more of a run than TrainView shows.
struct TrainObserver {
  std::function<void(const StepReport&, const TrainCounters&)> on_step = {};
  std::function<void(const EvalResult&)> on_evaluation = {};
  std::function<void(const std::vector<std::string>&)> on_samples = {};
  std::function<void(const Snapshot&, const WatchPlan&)> on_snapshot = {};
};

struct TrainOptions {
  std::function<Json()> recipe;  // asked for by the first rank, unless the run goes on
  std::string named;             // the recipe, for error texts
  std::string out;
  ComputeOptions compute;
  bool resume = false, from_scratch = false;  // go on with a run; from its first step
  bool dry = false, watch = false;
  TrainView::Show show = TrainView::Show::lines;
  TrainObserver observer = {};
};

// One rank's part of a run; the first one alone writes, and talks.
class TrainRun {
 public:
  TrainRun(TrainOptions options, Comm& comm);

  // Until it is done or a signal asks it to stop; then it is saved. Nothing where only the plan was wanted.
  std::optional<StopReason> run();
  const Recipe& recipe() const { return recipe_; }
  const TrainCounters& counters() { return trainer_->counters(); }

 private:
  Recipe open_run();
  void set_up();
  void prepare();
  void open_prepared();
  void open_model();
  void choose_device();
  void connect_gpus();
  void go_on();
  void forget();
  void tell(TrainView& view, const StepReport& report);
  void tell(TrainView& view, const EvalResult& result, bool best);
  void save(const TrainCounters& counters, bool best);

  TrainOptions options_;
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
  std::optional<TrainWatch> watch_;  // of the first rank
};

}  // namespace qkv::app

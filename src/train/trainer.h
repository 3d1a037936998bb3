// The training loop with periodic evaluation. Logging, saving and sampling are hooks, so the loop itself depends on
// neither files nor generation.
#pragma once

#include <functional>

#include "train/data.h"
#include "train/step.h"

namespace qkv {

struct EvalResult {
  int64_t step = 0;
  double loss = 0;  // nats per target, without smoothing
  double perplexity = 0, bits_per_byte = 0;
  int64_t counted = 0;
};

struct StepReport {
  int64_t step = 0;  // counted from 0
  StepResult result;
  double lr = 0, seconds = 0;  // of this step
};

// State of a run besides weights and the optimiser's tensors.
struct TrainCounters {
  int64_t step = 0;  // steps done
  int64_t tokens = 0;
  double seconds = 0;
  double best = std::numeric_limits<double>::infinity();
  int64_t best_step = -1, evals_without_improvement = 0;
};

struct TrainHooks {
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const EvalResult&, bool best)> on_evaluation = {};
  std::function<void(const TrainCounters&, bool best)> on_save = {};  // weights after `step` steps
  std::function<bool()> stop = {};                                    // polled between steps; true saves and stops
};

enum class StopReason : uint8_t { finished, stopped, no_improvement };

class Trainer {
 public:
  // Takes at once the memory in which a micro-batch runs; weights and gradients follow with the first step.
  Trainer(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data, Comm& comm = self_comm());

  Optimizer& optimizer() { return optimizer_; }
  TrainCounters& counters() { return counters_; }

  StopReason run(const TrainHooks& hooks, Probe* probe = nullptr);
  EvalResult evaluate();

  // Bytes each part of a run will need on the engine's device, of this rank, computed before anything is allocated. Where a
  // batch alone is more than its free memory, `activations` is a lower bound.
  struct Memory {
    int64_t weights = 0, copies = 0, gradients = 0, states = 0, activations = 0;
    int64_t gathered = 0;  // of the host: optimiser tensors of other ranks, for a checkpoint
    int64_t free = 0;      // on the device, before any of it is taken
    int64_t total() const { return weights + copies + gradients + states + activations; }
    // On the host while it is written: a copy of all, and what was gathered.
    int64_t checkpoint() const { return weights + states + 2 * gathered; }
  };
  static Memory plan(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data,
                     Comm& comm = self_comm());
  // Changes of the recipe that need less than its plan, and what they need: the best number of micro-batches, recompute,
  // both. More micro-batches have smaller activations and more sums in the gradient tree. None for a recipe whose own
  // micro-batches are too large to be read.
  struct Alternative {
    std::string change;  // as --set takes it
    int64_t total = 0;
  };
  static std::vector<Alternative> alternatives(const Engine& engine, const Recipe& recipe, Model& model,
                                               const TrainData& data, Comm& comm = self_comm());
  int64_t arena_peak() const { return arena_.peak() + gradients_.peak(); }
  // FLOPs of one step: 6 per weight and token, plus attention.
  double operations_per_step() const;

 private:
  // Most bytes of a micro-batch in each arena, and of gradients of weights beside so many sums of each.
  struct Peaks {
    int64_t activations = 0, gradients = 0, beside_sums = 0;
  };
  static Peaks dry_run(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data,
                       int64_t sums = 1);
  Trainer(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data, Comm& comm,
          const Peaks& peaks);

  const Engine& engine_;
  const Recipe& recipe_;
  Model& model_;
  const TrainData& data_;
  Optimizer optimizer_;
  Arena arena_, gradients_;
  TrainCounters counters_;
};

// Freezes weights that match a pattern, and those a family keeps constant (Marian's logit bias). Patterns are of the
// weights' names; one that matches none of them is of the tensors' names in files of Hugging Face's library. Throws an
// Error if a pattern matches none of either, or only a part of a weight.
void choose_trainable(Model& model, std::span<const std::string> frozen);

}  // namespace qkv

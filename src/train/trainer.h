// The loop: step after step of a recipe, with evaluation in between. Who logs, saves and draws samples does it through
// the hooks, so that training knows nothing of files or of generation.
#pragma once

#include <functional>

#include "train/data.h"
#include "train/step.h"

namespace qkv {

struct EvalResult {
  int64_t step = 0;
  double loss = 0;  // nats a target, without smoothing
  double perplexity = 0, bits_per_byte = 0;
  int64_t counted = 0;
};

struct StepReport {
  int64_t step = 0;  // counted from 0
  StepResult result;
  double lr = 0, seconds = 0;  // of this step
};

// What a run must remember beside weights and the optimiser's tensors.
struct TrainCounters {
  int64_t step = 0;  // steps done
  int64_t tokens = 0;
  double seconds = 0;
  double best = std::numeric_limits<double>::infinity();
  int64_t best_step = -1, without_better = 0;
};

struct TrainHooks {
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const EvalResult&, bool best)> on_evaluation = {};
  std::function<void(const TrainCounters&, bool best)> on_save = {};  // the weights are those after `step` steps
  std::function<bool()> stop = {};                                    // asked between steps; a last save follows
};

enum class TrainEnd : uint8_t { done, stopped, no_better };

class Trainer {
 public:
  Trainer(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data, Comm& comm = self_comm());

  Optimizer& optimizer() { return optimizer_; }
  TrainCounters& counters() { return counters_; }

  TrainEnd run(const TrainHooks& hooks, Probe* probe = nullptr);
  EvalResult evaluate();

  // Bytes of each part of a run, before any of it is taken.
  struct Memory {
    int64_t weights = 0, copies = 0, gradients = 0, states = 0, activations = 0;
    int64_t total() const { return weights + copies + gradients + states + activations; }
  };
  Memory plan() const;
  int64_t arena_peak() const { return arena_.peak() + gradients_.peak(); }
  // Floating-point operations of one step: 6 for each weight a token meets, and those of attention.
  double operations_per_step() const;

 private:
  const Engine& engine_;
  const Recipe& recipe_;
  Model& model_;
  const TrainData& data_;
  Optimizer optimizer_;
  Arena arena_, gradients_;
  TrainCounters counters_;
};

// Weights that fit a pattern, and those a family keeps constant (Marian's bias of logits), are not trained. An Error if
// a pattern fits none.
void choose_trainable(Model& model, std::span<const std::string> frozen);

}  // namespace qkv

// One step: micro-batches forward and backward, their gradients added up in one fixed tree, clipped, applied.
//
//   micro-batches   0   1   2   3          Pairs are added, then pairs of pairs: the order does not depend on who
//                    \ /     \ /           computed which, so 1, 2 and 4 ranks that hold whole subtrees get the same
//                     +       +            bits. Their number is a power of two.
//                      \     /
//                         +
#pragma once

#include <functional>
#include <span>

#include "train/objective.h"
#include "train/optimizer.h"

namespace qkv {

// Gradients of the micro-batches so far, added as the tree says.
class GradientTree {
 public:
  explicit GradientTree(std::vector<Param*> weights) : weights_(std::move(weights)) {}

  // The gradients that lie in the weights are the next micro-batch's; they are taken.
  void add(Context& cx);
  // All of them, back in the weights. As many as a power of two.
  void finish(Context& cx);

 private:
  using Level = std::vector<Storage>;  // one for each weight; undefined where no gradient came
  std::vector<Param*> weights_;
  std::vector<Level> levels_;  // levels_[i]: 2^i micro-batches, or empty
};

struct StepOptions {
  Precision precision = Precision::f32();
  LossSpec loss;
  double lr = 0, clip = 0;
  uint64_t seed = 0, step = 0;
  bool recompute = false;
  Probe* probe = nullptr;
  std::function<void(Context& cx)> before_update = {};  // gradients of the whole step lie in the weights
};

// Where the time of a step went; of all micro-batches.
struct StepSeconds {
  double forward = 0, backward = 0;
  double gradients = 0;  // added up, over micro-batches and ranks
  double norm = 0, update = 0;

  StepSeconds& operator+=(const StepSeconds& o);
};

struct StepResult {
  double loss = 0;       // mean over the counted targets, smoothing and z-loss included
  double balance = 0;    // mean over micro-batches, before its coefficient
  double grad_norm = 0;  // before it was clipped
  int64_t tokens = 0;    // rows
  int64_t counted = 0;   // targets
  StepSeconds seconds;
};

// `micro_batches`: this rank's part of the step. A NaN is an Error that names the op that
// made the first one, or the weight in whose gradient it is; nothing has changed then.
StepResult train_step(const Engine& engine, Arena& arena, Arena& gradients, const Model& model, Optimizer& optimizer,
                      std::span<const TrainBatch> micro_batches, const StepOptions& options);

}  // namespace qkv

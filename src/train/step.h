// One training step: forward and backward of all micro-batches, gradients summed in a fixed tree, clipped, applied.
//
//   micro-batches   0   1   2   3        Pairs are added, then pairs of pairs. The order does not depend on which rank
//                    \ /     \ /         computed which micro-batch: 1, 2 and 4 ranks, each with a whole subtree, get
//                     +       +          the same bits. The number of micro-batches and of ranks is a power of two.
//                      \     /
//                       \   /
//                         +
#pragma once

#include <functional>
#include <span>

#include "train/objective.h"
#include "train/optimizer.h"

namespace qkv {

// Sums the gradients of micro-batches in the order of the tree.
class GradientTree {
 public:
  explicit GradientTree(std::vector<Param*> weights) : weights_(std::move(weights)) {}

  // Moves the gradients of the next micro-batch out of the weights.
  void add(Context& cx);
  // Puts the sum back into the weights. The number of add() calls must be a power of two.
  void finish(Context& cx);

 private:
  using Level = std::vector<Storage>;  // one per weight; undefined if it had no gradient
  std::vector<Param*> weights_;
  std::vector<Level> levels_;  // levels_[i]: the sum of 2^i micro-batches, or empty
};

struct StepOptions {
  Precision precision = Precision::f32();
  LossSpec loss;
  double lr = 0, clip = 0;
  uint64_t seed = 0, step = 0;
  bool recompute = false;
  Probe* probe = nullptr;
  std::function<void(Context& cx)> before_update = {};  // the weights hold the step's gradients
  std::function<void()> while_waiting = {};             // called once the device has all of its work but the update
};

// Time of each part of a step, over all micro-batches.
struct StepSeconds {
  double forward = 0, backward = 0;
  double gradients = 0;  // summing them over micro-batches and ranks
  double norm = 0, update = 0;

  StepSeconds& operator+=(const StepSeconds& o);
};

struct StepResult {
  double loss = 0;       // mean over the counted targets, smoothing and z-loss included
  double balance = 0;    // mean over micro-batches, before its coefficient
  double grad_norm = 0;  // before clipping
  int64_t tokens = 0;    // rows
  int64_t counted = 0;   // targets
  StepSeconds seconds;
};

// `micro_batches`: those of this rank. A NaN is an Error that names the first op that produced one, or the weight whose
// gradient has it; the weights are unchanged then.
StepResult train_step(const Engine& engine, Arena& arena, Arena& gradients, const Model& model, Optimizer& optimizer,
                      std::span<const TrainBatch> micro_batches, const StepOptions& options);

}  // namespace qkv

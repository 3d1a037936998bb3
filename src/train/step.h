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
#include <map>
#include <span>

#include "train/objective.h"
#include "train/optimizer.h"

namespace qkv {

// Sums the gradients of micro-batches in the order of the tree, weight by weight: a gradient is added as soon as it is
// complete, so that beside the sums only those that backward still adds to take memory.
class GradientTree {
 public:
  explicit GradientTree(std::vector<Param*> weights);

  // Moves the gradient of a weight, which is complete in this micro-batch, out of it.
  void add(Context& cx, const Param& weight);
  // The same for the weights that were not added in this micro-batch, with or without a gradient.
  void end_micro_batch(Context& cx);
  // Puts the sums back into the weights. The number of micro-batches must be a power of two.
  void finish();

  // How many sums of a weight there are at once, of so many micro-batches.
  static int64_t most_sums(int64_t micro_batches);

 private:
  struct Sums {
    Param* weight = nullptr;
    uint64_t added = 0;  // micro-batches
    // levels[i]: the sum of 2^i of them, if bit i of `added` is set and they had a gradient.
    std::vector<Storage> levels;
  };
  void add(Context& cx, Sums& sums);

  std::vector<Sums> sums_;
  std::map<const Param*, size_t> index_;
  uint64_t micro_batches_ = 0;  // ended
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

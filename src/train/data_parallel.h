// Data parallelism over ranks. Each rank computes the micro-batches of one whole subtree of the gradient tree (step.h).
// Every weight has an owner rank, which receives all gradients of it and adds them in the order of the tree's top, so
// the sum has the same bits for 1, 2, 4 ... ranks.
//
//   zero 0   all-reduce: every rank gets all sums and updates all weights
//   zero 1   only the owner keeps optimiser tensors; it updates its weights, then they are all-gathered
//   zero 2   as 1, and gradients of weights owned by others are freed once sent
#pragma once

#include <span>
#include <vector>

#include "core/context.h"
#include "dist/comm.h"
#include "ops/optim.h"

namespace qkv {

class DataParallel {
 public:
  // An Error unless so many ranks can share the micro-batches of a step. For one rank to say before all begin.
  static void check_ranks(int ranks, int64_t micro_batches);

  // Weights are assigned whole: largest first, to the rank with the least so far. The number of ranks is a power of
  // two.
  DataParallel(Comm& comm, std::vector<Param*> weights, int zero);

  Comm& comm() const { return comm_; }
  const std::vector<Param*>& weights() const { return weights_; }
  int owner(size_t weight) const { return owner_[weight]; }
  int zero() const { return zero_; }
  bool alone() const { return comm_.size() == 1; }
  // Whether this rank keeps the weight's optimiser tensors and updates it.
  bool keeps(size_t weight) const { return zero_ == 0 || owner_[weight] == comm_.rank(); }

  // The micro-batches of a step that this rank computes.
  struct Range {
    int64_t first = 0, count = 0;
  };
  Range micro_batch_range(int64_t micro_batches) const;

  // Replaces this rank's gradients by the sums over all ranks: for all weights, or with zero > 0 for owned ones.
  void sum_gradients(Context& cx) const;
  // What that takes beside the gradients: all of them once more, to be sent, and those of owned weights from every rank.
  int64_t exchanged_bytes() const;
  // The l2 norm over all gradients, begun at once; each owner contributes its weights, added in the order of the weights.
  ops::SquareNorms squares(Context& cx) const;
  double gradient_norm(const ops::SquareNorms& of_mine) const;
  // After the update with zero > 0: every rank receives the weights from their owners.
  void all_gather_weights(Context& cx) const;

  // All-gather: the numbers of rank 0, then of rank 1, ...
  std::vector<double> all_gather_numbers(std::span<const double> mine) const;

 private:
  class ByOwner;
  void all_gather(const ByOwner& by, const Storage& mine, std::vector<Storage>& rooms) const;

  Comm& comm_;
  std::vector<Param*> weights_;
  std::vector<int> owner_;
  int zero_;
};

}  // namespace qkv

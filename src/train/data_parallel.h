// A step that several ranks do together. Each computes the micro-batches of one whole subtree; gradients meet at the
// weight's owner, who adds them as the rest of the tree says, so the sum has the same bits for any number of ranks.
//
//   zero 0   everyone gets all sums and moves all weights
//   zero 1   owners alone keep optimiser tensors, move their weights and send them round
//   zero 2   the same, and gradients of others' weights are let go once they are sent
#pragma once

#include <span>
#include <vector>

#include "core/context.h"
#include "dist/comm.h"

namespace qkv {

class DataParallel {
 public:
  // Whole weights go to owners, the largest first to who has least. An Error unless the ranks are a power of two.
  DataParallel(Comm& comm, std::vector<Param*> weights, int zero);

  Comm& comm() const { return comm_; }
  const std::vector<Param*>& weights() const { return weights_; }
  int owner(size_t weight) const { return owner_[weight]; }
  int zero() const { return zero_; }
  bool alone() const { return comm_.size() == 1; }
  bool keeps(size_t weight) const { return zero_ == 0 || owner_[weight] == comm_.rank(); }  // its optimiser tensors

  // The part of a step's micro-batches that is this rank's.
  struct Part {
    int64_t first = 0, count = 0;
  };
  Part part_of(int64_t micro_batches) const;

  // From the gradients of this rank's part to those of the whole step, where they are needed.
  void sum_gradients(Context& cx) const;
  // The norm over all weights, each counted once by its owner, in the order of the weights.
  double gradient_norm(Context& cx) const;
  // Owners have moved their weights: everyone gets them.
  void share_weights(Context& cx) const;

  // Numbers of all ranks, one after the other in the order of ranks.
  std::vector<double> all_numbers(std::span<const double> mine) const;

 private:
  using Bytes = std::vector<std::byte>;

  Comm& comm_;
  std::vector<Param*> weights_;
  std::vector<int> owner_;
  int zero_;
};

}  // namespace qkv

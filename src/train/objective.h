// The training loss of a batch.
#pragma once

#include <memory>
#include <vector>

#include "core/engine.h"
#include "model/model.h"

namespace qkv {

// Texts concatenated without padding. `targets`: for each row the next token (masked models: the hidden token), or
// kIgnored.
struct TrainBatch {
  static constexpr int32_t kIgnored = -100;

  std::vector<int32_t> ids, targets, lengths;
  std::vector<int32_t> source_ids, source_lengths;  // of an encoder-decoder
  int64_t counted = 0;                              // targets that are not ignored
  int64_t first_row = 0;  // global row number, for dropout: the mask does not depend on how rows are split into batches
};

// A batch as a model takes it, for one pass; `input` points to the rest.
struct BatchInput {
  BatchInput(Context& cx, const TrainBatch& batch);
  BatchInput(const BatchInput&) = delete;
  BatchInput& operator=(const BatchInput&) = delete;

  Rows rows, source_rows;
  Model::Input input;
};

struct LossSpec {
  double smoothing = 0, z_loss = 0;
  double balance = 0;  // coefficient of the experts' load-balancing loss
};

struct BatchLoss {
  Tensor loss;                        // [1], the root of backward
  Tensor losses;                      // [N] per row, without smoothing's normaliser; 0 where ignored
  Tensor balance;                     // [1] or undefined, before its coefficient
  std::shared_ptr<Probe> probe = {};  // what steps of the tape report to: it must live until backward is over
};

// `divisor`: number of targets of the whole step; `share`: this batch's part of the step's balance loss.
struct LossWeights {
  double divisor = 1, share = 1;
};
BatchLoss loss_of(Context& cx, const Model& model, const TrainBatch& batch, const LossSpec& spec,
                  const LossWeights& weights);

}  // namespace qkv

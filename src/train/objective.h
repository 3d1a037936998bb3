// What a model is trained to do: the loss of a batch.
#pragma once

#include <vector>

#include "core/engine.h"
#include "model/model.h"

namespace qkv {

// Texts one after the other, without padding. `targets` is what each row should say next (or, of a masked model, what
// stands there), or ignored.
struct TrainBatch {
  static constexpr int32_t kIgnored = -100;

  std::vector<int32_t> ids, targets, lengths;
  std::vector<int32_t> source_ids, source_lengths;  // of an encoder-decoder
  int64_t counted = 0;                              // targets that are not ignored
  int64_t first_row = 0;  // global number of the first row: what is dropped does not depend on how rows are divided
};

struct LossSpec {
  double smoothing = 0, z_loss = 0;
  double balance = 0;  // of the experts' load, times this
};

struct LossOf {
  Tensor loss;     // [1]: what is walked back from
  Tensor losses;   // [N] of the rows, without smoothing's normaliser; 0 where ignored
  Tensor balance;  // [1] or absent, before its weight in the step
};

// `divisor`: targets counted in the whole step; `share`: how much of the step's balance loss this batch is.
struct LossWeights {
  double divisor = 1, share = 1;
};
LossOf loss_of(Context& cx, const Model& model, const TrainBatch& batch, const LossSpec& spec,
               const LossWeights& weights);

}  // namespace qkv

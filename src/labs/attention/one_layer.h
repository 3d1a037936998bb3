// One layer of attention whose matrices may be tied to one another or replaced by learnt vectors.
#pragma once

#include "labs/small_model.h"

namespace qkv {

struct OneLayer {
  int64_t heads = 1;
  bool feed_forward = false;
  int64_t narrow = 0;  // the width of a head that is no share of the model's, without rotary positions; 0: 64 / heads
  // Which matrices are one and the same; heads: those of the first head are those of all.
  enum class Tie : uint8_t { none, q_and_k, k_and_v, heads } tie = Tie::none;
  // Which are learnt vectors, the same for every token, instead of what matrices make of the token.
  enum class Fixed : uint8_t { none, q_and_k, v } fixed = Fixed::none;
};

struct OneLayerTask {
  int64_t vocabulary = 0, steps = 0;
  std::string label;
  std::function<TrainBatch(int64_t step, int64_t count)> texts;  // step -1: those of the exam
};

// Share of right answers of such a model of width 64 after training.
double one_layer_right(const LabContext& lab, const OneLayer& form, const OneLayerTask& task, uint64_t seed);

}  // namespace qkv

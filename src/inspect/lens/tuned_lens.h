// The tuned lens: an affine map per layer, trained to make the stream readable by the output head:
// p_l = softmax(W_U Norm_f(h + A_l h + b_l)), from A = b = 0, minimising KL(p_L || p_l).
#pragma once

#include <memory>
#include <vector>

#include "inspect/texts/reading.h"

namespace qkv {

// One map per depth, except the last.
class TunedLens {
 public:
  explicit TunedLens(const Model& model, const Engine& engine);

  // h + A h + b for the stream h [N, C] of a depth. Under a tape, with gradients.
  Tensor moved(Context& cx, size_t depth, const Tensor& stream) const;

  struct Rule {
    int64_t epochs = 4;
    double lr = 1e-3;  // linear decay to 0
    double decay = 1e-2;
  };
  // The model's weights must not be trainable. `finished` is told the number of texts read over all epochs; returning
  // false stops.
  void train(Reader& reader, std::span<const TokenText> texts, const Rule& rule, const Reader::Finished& finished = {});

 private:
  struct Map {
    Param matrix, bias;
    Storage m[2], v[2];  // AdamW state
    int64_t steps = 0;
  };
  class Trainer;

  std::vector<std::unique_ptr<Map>> maps_;
};

}  // namespace qkv

// The tuned lens learns one affine map for each layer that brings its stream to where the last one's is read:
// p_l = softmax(W_U Norm_f(h + A_l h + b_l)), from A = b = 0, by KL(p_L || p_l).
#pragma once

#include <memory>
#include <vector>

#include "inspect/texts/reading.h"

namespace qkv {

// One map for each depth but the last.
class TunedLens {
 public:
  explicit TunedLens(const Model& model, const Engine& engine);

  // The stream [N, C] of a depth, moved to where the last is read. Under a tape, with gradients.
  Tensor moved(Context& cx, size_t depth, const Tensor& stream) const;

  struct Rule {
    int64_t epochs = 4;
    double lr = 1e-3;  // falls to 0 in a straight line
    double decay = 1e-2;
  };
  // On the texts' streams; the model's weights must not be trainable. `finished` hears of texts, epoch after epoch;
  // false ends it there.
  void train(Reader& reader, std::span<const TokenText> texts, const Rule& rule, const Reader::Finished& finished = {});

 private:
  struct Map {
    Param matrix, bias;
    Storage m[2], v[2];  // of AdamW
    int64_t steps = 0;
  };
  class Trainer;

  std::vector<std::unique_ptr<Map>> maps_;
};

}  // namespace qkv

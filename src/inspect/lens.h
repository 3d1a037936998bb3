// The logit lens: what a model would say if it ended after layer l, p_l = softmax(W_U Norm_f(h_l)), over many texts.
// How early do guesses settle, and how far are they from the last word, p_L?
//
// The tuned lens learns one affine map for each layer that brings its stream to where the last one's is read:
// p_l = softmax(W_U Norm_f(h + A_l h + b_l)), from A = b = 0, by KL(p_L || p_l).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspect/estimate.h"
#include "inspect/reading.h"

namespace qkv {

// Of one depth: the embedding, or the stream after a layer. The last one is the model's output itself.
struct LensLayer {
  std::string name;  // "embed", "0", "1", ...
  Estimate agrees;   // share of rows whose first guess is the last one's
  Estimate rank;     // of the last one's first guess; 1: it is the first here too
  Estimate entropy;  // in nats
  Estimate kl;       // KL(p_L || p_l), in nats
  Estimate loss;     // -log p_l of the token that comes; n is 0 where none is known
  Estimate settled;  // share of rows whose first guess is the last one's from here on, and not before
};

struct LensReport {
  std::vector<LensLayer> layers;
  Estimate settled_at;  // mean of where, in layers: the embedding is 0, the last layer their number
};

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
  void train(Reader& reader, std::span<const SeenText> texts, const Rule& rule, const Reader::Finished& finished = {});

 private:
  struct Map {
    Param matrix, bias;
    Storage m[2], v[2];  // of AdamW
    int64_t steps = 0;
  };
  class Trainer;

  std::vector<std::unique_ptr<Map>> maps_;
};

// With a tuned lens the same through its maps.
LensReport read_lens(Reader& reader, std::span<const SeenText> texts, const TunedLens* tuned = nullptr,
                     const Reader::Finished& finished = {});

}  // namespace qkv

// The logit lens: what a model would say if it ended after layer l, p_l = softmax(W_U Norm_f(h_l)), over many texts.
// How early do guesses settle, and how far are they from the last word, p_L?
#pragma once

#include <string>
#include <vector>

#include "inspect/report/estimate.h"
#include "inspect/texts/reading.h"

namespace qkv {

class TunedLens;

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

// With a tuned lens the same through its maps.
LensReport read_lens(Reader& reader, std::span<const TokenText> texts, const TunedLens* tuned = nullptr,
                     const Reader::Finished& finished = {});

}  // namespace qkv

// The logit lens over many texts: p_l = softmax(W_U Norm_f(h_l)), the prediction if the model ended after layer l. At
// which depth do guesses settle, and how far is p_l from the model's output p_L?
#pragma once

#include <string>
#include <vector>

#include "inspect/report/estimate.h"
#include "inspect/texts/reading.h"

namespace qkv {

class TunedLens;

// One depth: the embedding, or the residual stream after a layer. The last one is the model's output itself.
struct LensLayer {
  std::string name;  // "embed", "0", "1", ...
  Estimate agrees;   // share of rows whose top guess equals the output's
  Estimate rank;     // of the output's top guess; 1: it is the top guess here too
  Estimate entropy;  // in nats
  Estimate kl;       // KL(p_L || p_l), in nats
  Estimate loss;     // -log p_l of the next token; n is 0 where it is not known
  Estimate settled;  // share of rows that settle here: the top guess is the output's from this depth on, not before
};

struct LensReport {
  std::vector<LensLayer> layers;
  Estimate settled_at;  // mean depth of settling, in layers; the embedding is 0
};

// With `tuned`, through the tuned lens.
LensReport read_lens(Reader& reader, std::span<const TokenText> texts, const TunedLens* tuned = nullptr,
                     const Reader::Finished& finished = {});

}  // namespace qkv

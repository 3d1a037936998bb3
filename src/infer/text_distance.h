// How far two models are apart on the same texts.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "core/engine.h"
#include "data/token_text.h"
#include "model/model.h"

namespace qkv {

struct TextDistance {
  int64_t tokens = 0;                                         // compared
  double kl = 0;                                              // mean KL(before || after) in nats
  double agree = 0;                                           // share of rows with the same most likely token
  std::optional<double> perplexity_before, perplexity_after;  // of the next token; decoder-only models
};

struct TextDistanceOptions {
  Precision precision = Precision::f32();
  std::function<void(int64_t done, int64_t of)> progress = {};  // in tokens
};

// Both models have the same spec. An encoder-decoder reads each text as source and as target. An Error if no text has
// two tokens.
TextDistance distance_on_texts(const Model& before, const Model& after, const Engine& engine,
                               std::span<const TokenText> texts, const TextDistanceOptions& options = {});

}  // namespace qkv

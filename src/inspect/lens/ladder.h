// The ladder of guesses of one text (logit lens): the residual stream after each layer, read through the final norm and
// the output head.
//
//   p_l = softmax(head(norm_f(h_l)))      KL(p_L || p_l)      settled: the level from which the top guess stays
#pragma once

#include <functional>

#include "inspect/look/looking.h"

namespace qkv {

struct Guess {
  int32_t id = 0;
  double p = 0;
};

// One token at one level.
struct Rung {
  std::vector<Guess> guesses;  // most likely first
  double entropy = 0;          // of p_l, in nats
  double kl = 0;               // KL(p_L || p_l), in nats
  int64_t rank = 1;            // of the last layer's top guess; 1: it is the top guess here too
};

// Of log-probabilities: p_l at this level, and p_L.
Rung rung_of(std::span<const double> log_p, std::span<const double> last);

struct Ladder {
  static constexpr size_t kGuesses = 5;

  KeptRows rows;                          // of the text
  std::vector<std::vector<Rung>> levels;  // the embedding, then after each layer; [level][row - rows.first]
  std::vector<size_t> settled;            // level, per row
  std::vector<double> losses;             // -log p_L of the token that follows, per row; NaN where none does

  const Rung& at(size_t level, int64_t row) const { return levels[level][static_cast<size_t>(row - rows.first)]; }
};

struct LadderOptions {
  Precision precision = Precision::f32();
  std::function<void(int64_t rows)> progress;  // rows done so far, over all levels
};
Ladder climb(const Model& model, const Engine& engine, const Looked& seen, const LadderOptions& options = {});

}  // namespace qkv

// The ladder of guesses: what the head would say if the stream went to it after each layer (the logit lens).
//
//   p_l = softmax(head(last norm(h_l)))      KL(p_L || p_l)      settled: from there on the top guess stays
#pragma once

#include <functional>

#include "inspect/look/looking.h"

namespace qkv {

struct Guess {
  int32_t id = 0;
  double p = 0;
};

// One token at one height.
struct Rung {
  std::vector<Guess> guesses;  // likeliest first
  double entropy = 0;          // of p_l, in nats
  double kl = 0;               // KL(p_L || p_l), in nats
  int64_t rank = 1;            // of the guess the last layer makes; 1: it leads here too
};

struct Ladder {
  static constexpr size_t kGuesses = 5;

  KeptRows rows;                          // of the text
  std::vector<std::vector<Rung>> levels;  // the embedding, then after each layer; [level][row - rows.first]
  std::vector<size_t> settled;            // level, for each row

  const Rung& at(size_t level, int64_t row) const { return levels[level][static_cast<size_t>(row - rows.first)]; }
};

struct LadderOptions {
  Precision precision = Precision::f32();
  std::function<void(int64_t rows)> progress;  // told how many of all levels' rows are done
};
Ladder climb(const Model& model, const Engine& engine, const Looked& seen, const LadderOptions& options = {});

}  // namespace qkv

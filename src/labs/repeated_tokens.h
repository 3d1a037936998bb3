// Random tokens that repeat: a task that can be learnt only by looking back at what followed the last time.
#pragma once

#include "train/objective.h"

namespace qkv {

// Each text is a block of random tokens said again and again until `length`. Blocks differ in length from text to text,
// so that looking back by a fixed distance does not help.
struct RepeatedTokens {
  int32_t vocabulary = 64;
  int32_t length = 64;  // of a text
  int32_t shortest = 8, longest = 31;

  struct Texts {
    TrainBatch batch;
    std::vector<bool> first_time;   // rows whose target belongs to the first block
    std::vector<bool> said_before;  // rows that, like their target, stand one block back already
  };
  Texts texts(uint64_t seed, int64_t step, int64_t count) const;
};

struct RepeatedLosses {
  double first = 0, again = 0;  // mean loss of tokens of the first block, and of those said before
};
RepeatedLosses losses_of(const RepeatedTokens::Texts& texts, std::span<const float> losses);

}  // namespace qkv

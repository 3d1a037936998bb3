// Random tokens that repeat: a task that can be learnt only by looking back at what followed the last time.
#pragma once

#include "train/objective.h"

namespace qkv {

// Each text is a block of random tokens, each of them once, said again and again until `length`. Blocks differ in
// length from text to text, so that looking back by a fixed distance does not help. Only what has been said before
// counts: the rest is chance.
struct RepeatedTokens {
  int32_t vocabulary = 64;
  int32_t length = 64;  // of a text
  int32_t shortest = 6, longest = 20;

  TrainBatch texts(uint64_t seed, int64_t step, int64_t count) const;
};

}  // namespace qkv

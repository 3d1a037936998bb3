// Repeated random tokens: a task that can be learnt only by copying what followed the previous occurrence.
#pragma once

#include "train/objective.h"

namespace qkv {

// Each text is a block of distinct random tokens, repeated up to `length`. The block length varies from text to text,
// so attending at a fixed distance does not help. Only repeated tokens are targets; the others are unpredictable.
struct RepeatedTokens {
  int32_t vocabulary = 64;
  int32_t length = 64;                 // of a text
  int32_t shortest = 6, longest = 20;  // block

  TrainBatch texts(uint64_t seed, int64_t step, int64_t count) const;
};

}  // namespace qkv

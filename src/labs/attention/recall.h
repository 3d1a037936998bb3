// Looking up by content: facts "key = value" in random order, then questions for keys.
#pragma once

#include "labs/attention/one_layer.h"

namespace qkv {

// A fact is one token; its value is the same wherever the key appears in a text, and another one in the next text. What is
// asked can only be found by comparing keys: the places say nothing.
struct Recall {
  static constexpr int32_t kKeys = 8, kValues = 8, kRounds = 3;
  static constexpr int32_t kQuestion = kKeys * kValues;      // token kQuestion + key asks for a key
  static constexpr int64_t kVocabulary = kQuestion + kKeys;  // answers are the tokens 0 to 7, targets alone

  TrainBatch texts(uint64_t seed, int64_t step, int64_t count) const;
};
double recall_right(const LabContext& lab, const OneLayer& model, int64_t steps, uint64_t seed);

}  // namespace qkv

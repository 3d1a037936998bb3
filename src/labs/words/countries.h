// Countries and their capitals, known only by what is said of them, and arithmetic with their vectors.
#pragma once

#include "labs/words/vectors.h"

namespace qkv {

// A sentence: a place, a verb, a thing, or a thing, a verb, a place. Things (rivers, dishes) belong to one country and its
// capital; verbs go with countries, with capitals, or with both. So the two words of a pair share their things, the words
// of a kind their verbs, and no sentence has both words of a pair.
struct Countries {
  static constexpr int32_t kPairs = 24, kThings = 4,
                           kVerbs = 4;  // kThings: of a pair; kVerbs: of each kind and of both
  static constexpr int32_t kFirstThing = 2 * kPairs, kFirstVerb = kFirstThing + kPairs * kThings,
                           kStop = kFirstVerb + 3 * kVerbs;
  bool shared = true;  // false: the things of a capital are those of another country

  static int32_t country(int32_t pair) { return pair; }
  static int32_t capital(int32_t pair) { return kPairs + pair; }
  static int64_t vocabulary() { return kStop + 1; }
  TrainBatch texts(uint64_t seed, int64_t step, int64_t count) const;
};

// Shares of all questions "capital a - country a + country b = ?" that capital b answers, by the largest cosine.
struct AnalogyScore {
  double open = 0;            // among all words
  double three_left_out = 0;  // among all but the three of the question
  double neighbour = 0;       // without arithmetic: the word nearest to country b, itself left out
};
AnalogyScore analogies(const Vectors& words);  // a vector for each word
// With the embedding of a model after so many steps of training.
AnalogyScore learnt_analogies(const LabContext& lab, const Countries& world, int64_t steps, uint64_t seed);

}  // namespace qkv

// Alignment by a model that translates both ways: a word of one language and a word of the other that look at one
// another. Each way has its own head, chosen as score_alignment() chooses it.
//
//   M(s, t) = sqrt(w(t looks at s) w(s looks at t));  a link where M has at least `least` and is the highest of its
//   row or column (awesome-align's agreement of both directions, with weights of heads instead of similarities)
#pragma once

#include "inspect/look/alignment_error.h"

namespace qkv {

struct BothWaysScore {
  AlignmentScore there, back;
  double least = 0;         // chosen on one half of the sentence pairs
  Estimate chosen, judged;  // AER there and on the other half
};

// Links of two words that look at one another: `there` [target, source], `back` [source, target].
WordPairs mutual_links(const std::vector<std::vector<double>>& there, const std::vector<std::vector<double>>& back,
                       double least);

BothWaysScore score_both_ways(Reader& reader, const PairTokenizers& tokenizers, std::span<const GoldPair> pairs,
                              const Reader::Finished& finished = {});

}  // namespace qkv

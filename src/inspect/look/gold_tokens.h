// What judging alignments by gold pairs is made of: a sentence pair as tokens, the weights of a head from word to word,
// sums of errors.
#pragma once

#include <map>
#include <vector>

#include "inspect/look/alignment_error.h"

namespace qkv {

// One sentence pair as the model reads it, and the tokens of its words.
struct PairTokens {
  TokenText text;
  std::vector<std::vector<int32_t>> source, target;  // of each word; target tokens as positions in text.ids
};
PairTokens tokens_of(const PairTokenizers& tokenizers, const GoldPair& pair);

// |A| + |S| - |A n S| - |A n P| over |A| + |S|: the sum of these over sentences is their AER.
TextSum error_sum(const WordPairs& found, const GoldPair& gold);
double mean_of_half(std::span<const TextSum> sums, bool judging);

// Text -> the rows of a pass that are its own, by position.
std::map<size_t, std::vector<size_t>> rows_of_texts(const PassTexts& pass);

// The share of a head's weight that target word t gives to each source word; `row(position)` is the head's weights on
// the source there, `reading` whether the row is that of the word or the one before, which predicts it. Empty: no weight.
template <class Row>
std::vector<double> source_weights(const PairTokens& tokens, size_t t, bool reading, const Row& row) {
  std::vector<double> to(tokens.source.size(), 0);
  double all = 0;
  for (const int32_t token : tokens.target[t]) {
    const float* weights = row(static_cast<size_t>(token) - (reading ? 0 : 1));
    for (size_t s = 0; s < to.size(); ++s) {
      for (const int32_t key : tokens.source[s]) to[s] += static_cast<double>(weights[key]);
    }
    for (size_t k = 0; k < tokens.text.source.size(); ++k) all += static_cast<double>(weights[k]);
  }
  if (all <= 0) return {};
  for (double& weight : to) weight /= all;
  return to;
}

}  // namespace qkv

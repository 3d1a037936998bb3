// What sampling and beam search both do to a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

// An Error that names the position if a logit is not finite.
void check_logits(std::span<const float> logits, size_t position);

// An Error if an id is not in the vocabulary.
void check_ids(std::span<const int32_t> text, size_t vocabulary);

struct Scored {
  int32_t id = 0;
  double score = 0;
};

// The k highest, best first, ties by lower id. Never -infinity, so there may be fewer.
template <class Number>
std::vector<Scored> best_of(std::span<const Number> scores, size_t k);

// Repetition rules as in Hugging Face's generate.
// Each token of the text once: a positive score is divided by the penalty, a negative one multiplied.
void penalise_repetition(std::span<double> scores, std::span<const int32_t> text, double penalty);

// -infinity for every token that would repeat an n-gram; n = 0: none. If that were all tokens, none is forbidden.
void forbid_repeated_ngrams(std::span<double> scores, std::span<const int32_t> text, int64_t n);

}  // namespace qkv

// What sampling and beam search both do to a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

// An Error that names the position, unless all are finite numbers.
void check_logits(std::span<const float> logits, size_t position);

// Every id of a text is one of the vocabulary.
void check_ids(std::span<const int32_t> text, size_t vocabulary);

struct Scored {
  int32_t id = 0;
  double score = 0;
};

// The k highest, best first, of equals the lower id; never -infinity, so there may be fewer.
template <class Number>
std::vector<Scored> best_of(std::span<const Number> scores, size_t k);

// What keeps a text from repeating itself, as Hugging Face's generate has it.
// Every token of the text, once: a positive score is divided by the penalty, a negative one multiplied.
void penalise_repetition(std::span<double> scores, std::span<const int32_t> text, double penalty);

// -infinity for every token that would make n tokens in a row appear a second time; n = 0: none. If that is every
// token, none is forbidden: something must come next.
void forbid_repeated_ngrams(std::span<double> scores, std::span<const int32_t> text, int64_t n);

}  // namespace qkv

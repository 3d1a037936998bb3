// What keeps a text from repeating itself, as Hugging Face's generate defines it: for sampling and for beams.
#pragma once

#include <cstdint>
#include <span>

namespace qkv {

// Every token of the history, once: a positive score is divided by the penalty, a negative one multiplied.
void penalise_repetition(std::span<double> scores, std::span<const int32_t> history, double penalty);

// -infinity for every token that would make the last n tokens appear a second time; n = 0: none. If that is every
// token, none is forbidden: something must come next.
void forbid_repeated_ngrams(std::span<double> scores, std::span<const int32_t> history, int64_t n);

// An id of the history is one of the scores.
void check_history(std::span<const int32_t> history, size_t vocabulary);

}  // namespace qkv

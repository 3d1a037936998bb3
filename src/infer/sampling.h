// Choosing the next token. A pure function of the logits, the text so far, the request's settings and its seed: what
// else runs beside a request cannot change its tokens.
//
// Order, as Hugging Face's generate has it (OpenAI's penalties stand where it has none of its own):
//   1. logit_bias is added
//   2. repetition_penalty: every token of prompt and answer, once; positive logits are divided, negative multiplied
//   3. no_repeat_ngram: no n tokens in a row may appear twice in prompt and answer
//   4. frequency_penalty times its count, and presence_penalty, are taken from each token of the answer
//     (under a constraint only the tokens it allows are left; where 3 would leave none of them it does not hold)
//   5. temperature divides; 0 takes the most likely token and ends here
//   6. top_k: the k most likely
//   7. top_p: the fewest most likely tokens whose probabilities reach p, the one that reaches it included
//   8. min_p: those at least min_p times as likely as the most likely
//   9. typical_p: as top_p, but in order of | -log p - entropy |, smallest first
//  10. one is drawn
// Each of 6 to 9 looks at the probabilities of what the one before left. Of equals the lower id comes first, so top_k
// keeps exactly k; one token is always left. A rule that removes nothing changes no draw.
//
//
// Log-probabilities are those of the model itself: of the logits before 1, as OpenAI and vLLM report them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "infer/grammar/token_set.h"

namespace qkv {

struct Sampling {  // the defaults change nothing
  double temperature = 1;
  int64_t top_k = 0;  // 0: all
  double top_p = 1, min_p = 0, typical_p = 1;
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  int64_t no_repeat_ngram = 0;  // 0: they may
  std::map<int32_t, double> logit_bias = {};
  uint64_t seed = 0;
  int64_t alternatives = -1;  // n: log-probabilities of the chosen token and of the n most likely; -1: of none
};

// An Error that names the field, its value and the range.
void validate(const Sampling& sampling, int64_t vocabulary);

// Whether it is always the first of the highest logits, and nothing else of them matters.
bool takes_highest(const Sampling& sampling);

struct Choice {
  int32_t id = 0;
  double logprob = 0;                                         // 0 if not asked for
  std::vector<std::pair<int32_t, double>> alternatives = {};  // most likely first
};

struct ChoiceInput {
  std::span<const float> logits;               // [V]
  std::span<const int32_t> history;            // prompt and answer; its size is the address of the randomness
  size_t prompt = 0;                           // how much of it is prompt
  const grammar::TokenSet* allowed = nullptr;  // null: all tokens
};

// `sampling` has been validated. A logit that is no finite number is an Error that names the position.
Choice choose(const Sampling& sampling, const ChoiceInput& input);

}  // namespace qkv

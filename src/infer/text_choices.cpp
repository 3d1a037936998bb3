#include "infer/text_choices.h"

namespace qkv {

TextRequest text_request(const TextChoices& chosen, const GenerationDefaults& defaults) {
  constexpr double kBannedBias = -100;
  TextRequest request;
  SessionOptions& options = request.options;
  Sampling& s = options.sampling;
  const bool asked = chosen.temperature || chosen.top_k || chosen.top_p || chosen.min_p || chosen.typical_p;
  const auto choose = [](const auto& first, const auto& second, auto otherwise) {
    return first.value_or(second.value_or(otherwise));
  };
  s.temperature = asked || defaults.do_sample ? choose(chosen.temperature, defaults.temperature, 1.0) : 0;
  s.top_k = choose(chosen.top_k, defaults.top_k, s.top_k);
  s.top_p = choose(chosen.top_p, defaults.top_p, s.top_p);
  s.min_p = choose(chosen.min_p, defaults.min_p, s.min_p);
  s.typical_p = choose(chosen.typical_p, defaults.typical_p, s.typical_p);
  s.repetition_penalty = choose(chosen.repetition_penalty, defaults.repetition_penalty, s.repetition_penalty);
  s.presence_penalty = chosen.presence_penalty.value_or(s.presence_penalty);
  s.frequency_penalty = chosen.frequency_penalty.value_or(s.frequency_penalty);
  s.no_repeat_ngram = chosen.no_repeat_ngram.value_or(defaults.no_repeat_ngram);
  for (const int32_t id : defaults.banned) s.logit_bias[id] = kBannedBias;
  for (const auto& [id, value] : chosen.logit_bias) s.logit_bias[id] = value;
  s.seed = chosen.seed;
  options.max_new = choose(chosen.max_new, defaults.max_new_tokens, int64_t{0});
  options.draft = chosen.draft;
  options.eos = defaults.tokens.eos;
  options.forced_bos = defaults.forced_bos;
  request.stop = chosen.stop;
  return request;
}

}  // namespace qkv

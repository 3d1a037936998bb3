// What a user says about how a text is written; the rest comes from the model's generation defaults.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "infer/generation_defaults.h"
#include "infer/text_run.h"

namespace qkv {

struct TextChoices {
  std::optional<double> temperature = {}, top_p = {}, min_p = {}, typical_p = {};
  std::optional<double> repetition_penalty = {}, presence_penalty = {}, frequency_penalty = {};
  std::optional<int64_t> top_k = {}, no_repeat_ngram = {}, max_new = {};
  std::map<int32_t, double> logit_bias = {};
  std::vector<std::string> stop = {};
  uint64_t seed = 0;
  int64_t draft = 0;
};

// Everything but the prompt, its ends and callbacks. Sampling is on if one of its rules is chosen or the defaults turn
// it on; otherwise the most likely token is taken.
TextRequest text_request(const TextChoices& chosen, const GenerationDefaults& defaults);

}  // namespace qkv

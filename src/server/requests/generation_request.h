// What /v1/completions, /v1/chat/completions and /v1/responses have in common: how a text is written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "infer/grammar/budget.h"
#include "infer/grammar/token_mask.h"
#include "infer/text_choices.h"
#include "server/answers/tool_calls.h"
#include "server/look/look_request.h"
#include "server/models/served_model.h"

namespace qkv::server {

struct GenerationPrompt {
  std::vector<int32_t> ids;
  std::string text = {};  // for echo
};

struct GenerationRequest {
  std::vector<GenerationPrompt> prompts;
  TextChoices choices;
  int64_t n = 1;  // texts for each prompt, with seeds that follow each other
  bool stream = false, include_usage = false;
  int64_t logprobs = -1;  // alternatives of each token; -1: no log-probabilities
  bool own_text = false;  // decoded alone, not as what follows the prompt
  bool echo = false;      // the prompt is a part of the text
  // Tools, in a chat.
  ToolStyle tools = ToolStyle::none;
  std::string forced;  // how the answer begins; it is a part of the prompt's ids
  bool several_calls = true;
  std::shared_ptr<const grammar::TokenMasks> constraint = {};  // what every text is held to; null: nothing
  std::optional<LookRequest> look = {};
};

// Sampling, lengths, stops, seed, n, stream. `max_name`: what the route calls the most tokens to write.
GenerationRequest read_generation(const Fields& fields, const ServedModel& model,
                                  const std::vector<std::string_view>& max_names, Budget& budget);

// An ApiError 400 with both numbers unless at least one token can be written after the prompt.
void check_prompt_length(const GenerationPrompt& prompt, const ServedModel& model, std::string_view field);

// /v1/completions: everything, "prompt" included.
GenerationRequest read_completion(const Fields& fields, const ServedModel& model, Budget& budget);

// The steps of a budget that tokenizing a text of so many bytes takes.
inline size_t tokenizing_steps(size_t bytes) {
  return 1 + bytes / 4;
}

// To be called before a text is tokenized. One that is too long by far is refused by its beginning, an ApiError 400 at
// `field`: the time grows with what the model reads, not with what a client sends.
void check_text_length(const Tokenizer& tokenizer, std::string_view text, int64_t max_tokens, std::string_view field,
                       Budget& budget);

// Ids of the model's tokenizer, as a list of numbers.
std::vector<int32_t> read_ids(const Fields& fields, std::string_view name, const OrderedJson& list, int64_t vocabulary);

}  // namespace qkv::server

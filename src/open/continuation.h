// What a model generates greedily from a prompt, with a probe that looks or edits.
#pragma once

#include <string>

#include "open/open_model.h"

namespace qkv {

struct ContinuationOptions {
  std::string prompt;      // the source of an encoder-decoder
  const TokenText& start;  // used without a prompt: the beginning of this text, up to the end of a character
  int64_t max_new = 24;
  bool ids = false;                 // prompt and continuation are written as token ids: needs no tokenizer
  std::vector<int32_t> given = {};  // then this is the prompt
};
std::string continuation_prompt(const OpenModel& model, const ContinuationOptions& asked);
std::string greedy_continuation(const OpenModel& model, const ContinuationOptions& asked, Probe* probe);

}  // namespace qkv

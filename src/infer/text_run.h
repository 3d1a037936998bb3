// Text in, text out on a Scheduler: many at once, each with its callbacks.
//
// Text comes in whole characters and is never taken back. It has no special tokens, no end token and no part of a stop
// string.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/scheduler.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct WrittenText {
  std::string text;
  std::vector<Choice> tokens;                    // all generated tokens, those without text included
  int64_t prompt_tokens = 0, cached_tokens = 0;  // cached: of the prompt, not computed for this text
  Ended ended = Ended::not_yet;
  std::string error, hint;     // if it failed
  std::string stop;            // the stop string that ended it, if one did
  double prefill_seconds = 0;  // from submitting to the first token
  double decode_seconds = 0;   // from there to the last
};

struct TextRequest {
  SessionOptions options;  // prompt and source as ids
  std::vector<std::string> stop = {};
  bool own_text = false;  // decoded alone; otherwise as the continuation of the prompt, with its space
  std::function<void(const Choice&)> on_token = {};     // each token, before its text
  std::function<bool(std::string_view)> on_text = {};   // more text; false ends it
  std::function<void(const WrittenText&)> on_end = {};  // once, at the end
};

// From any thread; callbacks run in the thread that steps the scheduler. An Error if the request is invalid.
Scheduler::Ticket submit_text(Scheduler& scheduler, const Tokenizer& tokenizer, TextRequest request);

// The same without a tokenizer: tokens, but no text.
Scheduler::Ticket submit_ids(Scheduler& scheduler, TextRequest request);

// The prompt of a decoder. Special tokens spelled out in the text are encoded as such. An empty text is BOS, if there
// is one.
std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, const ModelSpec& spec, std::string_view text);

}  // namespace qkv

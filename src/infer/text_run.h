// Text in, text out, on a Scheduler: many at once, each with its callbacks.
//
// What is shown is whole characters, never taken back, and never holds a special token, the token that ended the text,
// or a part of a stop string.
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
  std::vector<Choice> tokens;  // all that were chosen, those not shown included
  int64_t prompt_tokens = 0;
  Ended ended = Ended::not_yet;
  std::string error;         // if it failed
  std::string stop;          // the stop string that ended it, if one did
  double read_seconds = 0;   // from submitting to the first token
  double write_seconds = 0;  // from there to the last
};

struct TextRequest {
  SessionOptions options;  // prompt and source as ids
  std::vector<std::string> stop = {};
  bool own_text = false;  // decoded as a text of its own; otherwise as what follows the prompt, with its space
  std::function<bool(std::string_view)> on_text = {};   // more text; false: no more is wanted
  std::function<void(const WrittenText&)> on_end = {};  // once, at the end
};

// From any thread; callbacks are called by who steps the scheduler. An Error if the request makes no sense.
Scheduler::Ticket submit_text(Scheduler& scheduler, const Tokenizer& tokenizer, TextRequest request);

// The same without a tokenizer: tokens come, text does not.
Scheduler::Ticket submit_ids(Scheduler& scheduler, TextRequest request);

// A text as a decoder reads it. Special tokens written in it are those tokens. An empty one is the token texts begin
// with, where there is one.
std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, const ModelSpec& spec, std::string_view text);

}  // namespace qkv

// How the texts of a request are written down: as one JSON, or as a stream of events. One form for each route.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "infer/session.h"
#include "server/answers/tool_calls.h"
#include "server/http/api_error.h"

namespace qkv::server {

// One text of an answer, so far.
struct WrittenChoice {
  size_t index = 0, prompt_index = 0;
  std::string text = {};  // what is not a tool call
  std::vector<ToolCall> calls = {};
  std::vector<Choice> tokens = {};  // where log-probabilities are asked for; without the end token
  int64_t prompt_tokens = 0, written = 0;
  int64_t cached = 0;  // tokens of the prompt that were in the cache
  Ended ended = Ended::not_yet;
  std::string error = {};

  const char* finish_reason() const;
};

// What was added to it.
struct AnswerPiece {
  std::string text;
  std::vector<ToolCall> calls;
  std::vector<Choice> tokens;
};

struct AnswerInfo {
  std::string id, model;
  int64_t created = 0;
  Tokenizer tokenizer;
  bool logprobs = false, include_usage = false;
};

class AnswerForm {
 public:
  explicit AnswerForm(AnswerInfo info) : info_(std::move(info)) {}
  virtual ~AnswerForm() = default;

  virtual OrderedJson whole(std::span<const WrittenChoice> choices) const = 0;
  // Parts of a stream, as server-sent events.
  virtual std::string begin(std::span<const WrittenChoice>) { return {}; }
  virtual std::string add(const WrittenChoice& choice, const AnswerPiece& piece) = 0;
  virtual std::string end(const WrittenChoice& choice) = 0;
  virtual std::string close(std::span<const WrittenChoice> choices) = 0;
  virtual std::string fail(const ApiError& error) const;

 protected:
  AnswerInfo info_;
};

// The text of one token; parts of characters as U+FFFD.
struct TokenShown {
  std::string text, bytes;
};
TokenShown shown_token(int32_t id, const Tokenizer& tokenizer);

struct Usage {
  int64_t prompt = 0, cached = 0, written = 0;
};
Usage usage_of(std::span<const WrittenChoice> choices);

// Log-probabilities of a chat: [{"token", "logprob", "bytes", "top_logprobs"}].
OrderedJson logprobs_json(std::span<const Choice> tokens, const Tokenizer& tokenizer);

std::unique_ptr<AnswerForm> completion_form(AnswerInfo info);
std::unique_ptr<AnswerForm> chat_form(AnswerInfo info);
std::unique_ptr<AnswerForm> responses_form(AnswerInfo info);

}  // namespace qkv::server

// Tool calls in what a model writes, for the common styles of chat templates:
//   hermes   <tool_call>{"name": ..., "arguments": {...}}</tool_call>, any number, with text around them (Hermes, Qwen)
//   llama3   the answer is {"name": ..., "parameters": {...}}, perhaps after <|python_tag|>; several are split by ;
//   mistral  [TOOL_CALLS] [{"name": ..., "arguments": {...}}, ...]
// What looks like a call but cannot be read stays text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::server {

enum class ToolStyle { none, hermes, llama3, mistral };

// By what the template itself writes.
ToolStyle tool_style_of(const ChatTemplate& chat_template);

struct ToolCall {
  std::string id, name, arguments;  // arguments: JSON
};

// Special tokens that begin or end a call in this style. They have no text of their own and must be given to the reader
// where they stand.
std::vector<std::pair<int32_t, std::string>> tool_marks(ToolStyle style, const Tokenizer& tokenizer);

// How an answer begins that has to be a call: all that stands before its JSON (tool_grammar.h).
std::string_view forced_beginning(ToolStyle style);

// Reads an answer part by part. The parts of the text may be cut anywhere.
class ToolReader {
 public:
  explicit ToolReader(ToolStyle style, bool several = true) : style_(style), several_(several) {}

  struct Read {
    std::string text;  // that belongs to no call
    std::vector<ToolCall> calls;
  };
  Read feed(std::string_view text);
  Read finish();

 private:
  void outside(Read& read, bool last);
  bool inside(Read& read, bool last);
  void add_calls(Read& read, std::string_view body, const std::string& as_text);
  std::string_view opening() const;

  ToolStyle style_;
  bool several_;  // calls; otherwise those after the first are dropped
  std::string held_;
  size_t searched_ = 0;  // bytes of held_ that hold no end of a call
  bool in_call_ = false, wrote_ = false, called_ = false;
};

}  // namespace qkv::server

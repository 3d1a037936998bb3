// What qkv chat needs before a model is there: the template, its variables, and messages from a file.
#pragma once

#include <string>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::app {

struct ChatSetup {
  std::string model, chat_template;  // paths; one may be empty
  std::vector<std::string> set;      // NAME=VALUE
};

ChatTemplate template_of(const ChatSetup& setup);

// Variables of the template: the tokens it may name, and what --set says, which is JSON or a plain word.
OrderedJson variables_of(const ChatSetup& setup, const Tokenizer* tokenizer);

// --render: prints what the template makes of a conversation.
struct RenderRequest {
  ChatSetup setup;
  std::string messages, tools;  // files
  bool json = false;
};
void render_chat(const RenderRequest& request);

}  // namespace qkv::app

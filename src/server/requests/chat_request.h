// Messages and tools of a chat, checked, and what the model's template makes of them. Texts of the request never become
// control tokens, wherever they stand: only what the template itself writes is read as one (text/chat/chat_prompt.h).
#pragma once

#include "server/requests/generation_request.h"

namespace qkv::server {

// /v1/chat/completions.
GenerationRequest read_chat(const Fields& fields, const ServedModel& model, Budget& budget);

// /v1/responses: the parts that are the same as in a chat, said in other words.
GenerationRequest read_responses(const Fields& fields, const ServedModel& model, Budget& budget);

// The conversation as templates have it: "messages" and "tools" in OpenAI's form, checked and in the usual order.
struct Conversation {
  ChatTemplate::Input input;
  std::vector<std::string> tool_names;
};
Conversation read_conversation(const Fields& fields);

}  // namespace qkv::server

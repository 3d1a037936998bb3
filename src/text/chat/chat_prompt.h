// A conversation as the ids a model reads: its template around the messages, and the messages as text. A control token
// that is spelled out in a message stays text: only the template's own are read as such.
#pragma once

#include <cstdint>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 ChatTemplate::Input input);

}  // namespace qkv

// Encodes a conversation with the model's chat template. Special tokens written by the template are parsed; the same
// text inside a message stays plain text (no prompt injection through special tokens).
#pragma once

#include <cstdint>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 ChatTemplate::Input input);

}  // namespace qkv

// Encodes a conversation with the model's chat template. Added tokens written by the template are read as tokens; the
// same text inside a message, or across the end of one, stays plain text. The model's own answers may hold added tokens
// that are not special, such as </think>.
#pragma once

#include <cstdint>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 const ChatTemplate::Input& input);

// Of a rendered conversation, or of a part of one.
std::vector<int32_t> encode_rendered(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                     const MarkedText& rendered);

}  // namespace qkv

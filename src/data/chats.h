// Conversations for supervised fine-tuning: JSONL, one {"messages": [{"role", "content"}, ...]} per line, rendered with
// the model's chat template. Only the assistant's tokens are training targets.
#pragma once

#include <filesystem>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct Chat {
  std::vector<int32_t> ids;
  std::vector<bool> answer;  // whether the assistant wrote this token
};

// An invalid conversation, or one longer than `longest` tokens, is an Error with the line number.
std::vector<Chat> read_chats(const std::filesystem::path& file, const ChatTemplate& chat_template,
                             const Tokenizer& tokenizer, int64_t longest);

}  // namespace qkv

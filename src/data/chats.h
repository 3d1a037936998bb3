// Conversations to learn answers from: JSONL, one {"messages": [{"role", "content"}, ...]} a line, written as the
// model's own chat template writes them. Only what the assistant says is predicted.
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

// An Error names the line that makes no sense, or is longer than `longest` tokens.
std::vector<Chat> read_chats(const std::filesystem::path& file, const ChatTemplate& how, const Tokenizer& tokenizer,
                             int64_t longest);

}  // namespace qkv

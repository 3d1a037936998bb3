// Conversations for supervised fine-tuning: JSONL, one {"messages": [{"role", "content"}, ...]} per line, rendered with
// the model's chat template. Only the assistant's tokens are training targets.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/dataset_pack.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct Chat {
  std::vector<int32_t> ids;
  std::vector<bool> answer;   // whether the assistant wrote this token
  uint64_t answer_bytes = 0;  // of the text it wrote
};

class ChatReader {
 public:
  ChatReader(std::vector<std::string> files, const ChatTemplate& chat_template, const Tokenizer& tokenizer);

  // False at the end. An invalid conversation, or a file without one, is an Error with file and line.
  bool next(Chat& chat);

  // Of the conversation read last.
  const std::string& messages() const { return messages_; }  // as JSON without spaces
  size_t file() const { return next_file_ - 1; }
  uint64_t line() const { return line_; }
  double before() const { return before_; }  // the share of its file before it

 private:
  bool open_next();

  std::vector<std::string> files_;
  const ChatTemplate& chat_template_;
  const Tokenizer& tokenizer_;
  size_t next_file_ = 0;
  std::ifstream in_;
  std::string messages_;
  uint64_t line_ = 0, in_file_ = 0, size_ = 0, read_ = 0;
  double before_ = 0;
};

// Packs conversations as DatasetManifest::chats says. Held-out ones are chosen by a hash of their messages. Those longer
// than `limit.side` are left out, or cut at their end; without an answer that is left they are left out too.
Packed pack_chats(const PackOptions& options, const ChatTemplate& chat_template, const Tokenizer& tokenizer);
// A packed conversation, without `answer_bytes`: PackedSplit::text_bytes() has those of all answers.
Chat chat_at(const PackedSplit& split, uint64_t number);

}  // namespace qkv

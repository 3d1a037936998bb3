#include "data/chats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/path.h"
#include "base/progress.h"
#include "data/dataset_tokenizer.h"
#include "data/dataset_writer.h"
#include "text/chat/chat_prompt.h"

namespace qkv {
namespace {

struct ChatMaker {
  const ChatTemplate& chat_template;
  const Tokenizer& tokenizer;
  Chat chat = {};

  void add(const MarkedText& text, bool answer) {
    for (const int32_t id : encode_rendered(tokenizer, chat_template, text)) {
      chat.ids.push_back(id);
      chat.answer.push_back(answer);
    }
    if (answer) chat.answer_bytes += text.size();
  }
};

// The template says itself what the assistant writes: between {% generation %} and {% endgeneration %}.
void add_generated(ChatMaker& maker, const MarkedText& whole) {
  for (size_t begin = 0, end = 0; begin < whole.size(); begin = end) {
    end = whole.end_of_generated(begin);
    maker.add(whole.part(begin, end - begin), whole.is_generated(begin));
  }
}

// The whole conversation, split where each answer begins and ends. Unless the template marks them, an answer is the
// difference between the rendering of the messages before it with a generation prompt and the rendering that includes it.
Chat chat_of(const OrderedJson& messages, const ChatTemplate& chat_template, const Tokenizer& tokenizer,
             const std::string& place) {
  ChatMaker maker{chat_template, tokenizer};
  if (chat_template.marks_answers()) {
    add_generated(maker, chat_template.render_marked({.messages = messages, .add_generation_prompt = false}));
    return maker.chat;
  }
  OrderedJson so_far = OrderedJson::array();
  size_t written = 0;
  std::string before;
  const auto add_rest = [&](const MarkedText& now, bool answer, const char* problem, const char* hint) {
    QKV_CHECK(now.bytes().starts_with(before), place, problem, Hint(hint));
    maker.add(now.part(written, now.size() - written), answer);
    before = now.bytes();
    written = now.size();
  };
  for (const OrderedJson& message : messages) {
    const bool answer = message.value("role", "") == "assistant";
    if (answer) {
      add_rest(chat_template.render_marked({.messages = so_far, .add_generation_prompt = true}), false,
               ": the template writes earlier messages anew once others follow",
               "split the conversation: one line for each answer");
    }
    so_far.push_back(message);
    if (!answer) continue;
    add_rest(chat_template.render_marked({.messages = so_far, .add_generation_prompt = false}), true,
             ": the template does not begin an answer as it asks for one",
             "this template cannot tell where an answer starts");
  }
  return maker.chat;
}

int64_t answers_in(const Chat& chat) {
  return std::count(chat.answer.begin(), chat.answer.end(), true);
}

}  // namespace

ChatReader::ChatReader(std::vector<std::string> files, const ChatTemplate& chat_template, const Tokenizer& tokenizer)
    : files_(std::move(files)), chat_template_(chat_template), tokenizer_(tokenizer) {}

bool ChatReader::open_next() {
  if (next_file_ > 0) {
    const std::string& file = files_[next_file_ - 1];
    QKV_CHECK(in_.eof(), file, ": cannot be read: ", std::strerror(errno), Hint(errno_hint(errno)));
    QKV_CHECK(in_file_ > 0, file, ": holds no conversation", Hint("one JSON object per line"));
  }
  if (next_file_ == files_.size()) return false;
  const std::string& file = files_[next_file_++];
  in_ = std::ifstream(file, std::ios::binary);
  QKV_CHECK(in_.good(), file, ": cannot be opened: ", std::strerror(errno), Hint(errno_hint(errno)));
  std::error_code unknown;
  size_ = std::filesystem::file_size(file, unknown);
  if (unknown) size_ = 0;
  line_ = in_file_ = read_ = 0;
  return true;
}

bool ChatReader::next(Chat& chat) {
  for (std::string line;;) {
    if (next_file_ == 0 || !std::getline(in_, line)) {
      if (!open_next()) return false;
      continue;
    }
    ++line_;
    before_ = size_ == 0 ? 0 : static_cast<double>(read_) / static_cast<double>(size_);
    read_ += line.size() + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = place_of(files_[file()], line_);
    const OrderedJson json = parse_ordered_json(line, place);
    const auto messages = json.is_object() ? json.find("messages") : json.end();
    const bool good = json.is_object() && messages != json.end() && messages->is_array() && !messages->empty() &&
                      std::all_of(messages->begin(), messages->end(), [](const OrderedJson& m) {
                        return m.is_object() && m.contains("role") && m["role"].is_string() && m.contains("content") &&
                               m["content"].is_string();
                      });
    QKV_CHECK(good, place, ": is no conversation: ", line.substr(0, 60),
              Hint("write {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}, ...]}"));
    chat = chat_of(*messages, chat_template_, tokenizer_, place);
    QKV_CHECK(answers_in(chat) > 0, place, ": nobody answers in it",
              Hint("a message with the role \"assistant\" is what is learnt"));
    messages_ = messages->dump();
    ++in_file_;
    return true;
  }
}

Packed pack_chats(const PackOptions& options, const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  ChatReader reader(options.files, chat_template, tokenizer);
  const auto vocabulary = static_cast<int32_t>(tokenizer.vocab_size());
  DatasetWriter writer(options.out,
                       {.chats = true, .vocabulary = 2 * int64_t{vocabulary}, .tokenizer = fingerprint(tokenizer)},
                       options.shard_bytes);
  Packed packed;
  Progress progress("packing, conversations", 0);
  int64_t done = 0;
  for (Chat chat; reader.next(chat); progress.update(++done)) {
    const size_t whole = chat.ids.size();
    const auto answers = static_cast<double>(answers_in(chat));
    if (const uint64_t most = options.limit.side; most > 0 && whole > most) {
      if (options.limit.cut) {
        chat.ids.resize(most);
        chat.answer.resize(most);
      }
      const bool kept = options.limit.cut && answers_in(chat) > 0;
      ++(kept ? packed.cut : packed.too_long);
      if (packed.first_too_long.empty()) {
        packed.first_too_long =
            fmt::format("{} with {} tokens", place_of(options.files[reader.file()], reader.line()), whole);
      }
      if (!kept) continue;
      chat.answer_bytes = static_cast<uint64_t>(static_cast<double>(chat.answer_bytes) *
                                                static_cast<double>(answers_in(chat)) / answers);
    }
    for (size_t i = 0; i < chat.ids.size(); ++i) {
      if (chat.answer[i]) chat.ids[i] += vocabulary;
    }
    const std::span<const int32_t> entry = chat.ids;
    writer.add(split_of(options, reader.messages(), reader.before()), {&entry, 1}, chat.answer_bytes);
  }
  progress.finish();
  packed.manifest = writer.finish();
  check_any_to_train(options, packed);
  writer.commit();
  return packed;
}

Chat chat_at(const PackedSplit& split, uint64_t number) {
  QKV_CHECK(split.chats(), "the dataset holds no conversations", Hint("pack it again from conversations"));
  const auto vocabulary = static_cast<int32_t>(split.vocabulary() / 2);
  Chat chat;
  chat.ids.resize(split.length(number));
  split.copy(split.start(number), chat.ids);
  for (int32_t& id : chat.ids) {
    chat.answer.push_back(id >= vocabulary);
    id %= vocabulary;
  }
  return chat;
}

}  // namespace qkv

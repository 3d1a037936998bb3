#include "data/chats.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/path.h"
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

}  // namespace

std::vector<Chat> read_chats(const std::filesystem::path& file, const ChatTemplate& chat_template,
                             const Tokenizer& tokenizer, int64_t longest) {
  std::ifstream in(file, std::ios::binary);
  QKV_CHECK(in.good(), file.string(), ": cannot be opened: ", std::strerror(errno), Hint(errno_hint(errno)));
  std::vector<Chat> chats;
  int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = file.filename().string() + " line " + std::to_string(number);
    const OrderedJson json = parse_ordered_json(line, place);
    const auto messages = json.is_object() ? json.find("messages") : json.end();
    const bool good = json.is_object() && messages != json.end() && messages->is_array() && !messages->empty() &&
                      std::all_of(messages->begin(), messages->end(), [](const OrderedJson& m) {
                        return m.is_object() && m.contains("role") && m["role"].is_string() && m.contains("content") &&
                               m["content"].is_string();
                      });
    QKV_CHECK(good, place, ": is no conversation: ", line.substr(0, 60),
              Hint("write {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}, ...]}"));
    Chat chat = chat_of(*messages, chat_template, tokenizer, place);
    QKV_CHECK(std::find(chat.answer.begin(), chat.answer.end(), true) != chat.answer.end(), place,
              ": nobody answers in it", Hint("a message with the role \"assistant\" is what is learnt"));
    QKV_CHECK(static_cast<int64_t>(chat.ids.size()) <= longest, place, ": has ", chat.ids.size(),
              " tokens but the recipe's sequence is ", longest, Hint("raise sequence, or split the conversation"));
    chats.push_back(std::move(chat));
  }
  QKV_CHECK(in.eof(), file.string(), ": cannot be read: ", std::strerror(errno), Hint(errno_hint(errno)));
  QKV_CHECK(!chats.empty(), file.string(), ": holds no conversation", Hint("one JSON object per line"));
  return chats;
}

}  // namespace qkv

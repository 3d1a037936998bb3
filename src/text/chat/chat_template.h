// Chat templates: how a model wants its messages written, as the Jinja template it comes with says.
#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/ordered_json.h"

namespace qkv {

namespace jinja {
struct Program;
}

struct ChatMessage {
  std::string role, content;
};
OrderedJson messages_json(const std::vector<ChatMessage>& messages);

class ChatTemplate {
 public:
  static ChatTemplate parse(std::string_view source, std::string_view what);
  // Of a folder: chat_template.jinja, else chat_template of tokenizer_config.json (the one named "default" where there
  // are several). Of a GGUF file: tokenizer.chat_template. None where the model has none.
  static std::optional<ChatTemplate> load(const std::filesystem::path& folder_or_gguf);
  // The error for a model without a template.
  [[noreturn]] static void fail_without(const std::filesystem::path& folder_or_gguf);

  struct Input {
    OrderedJson messages;
    bool add_generation_prompt = true;
    OrderedJson more = OrderedJson::object();  // other variables: tools, documents, enable_thinking, ...
    std::optional<std::time_t> now = {};       // for templates that write the date
  };
  // bos_token and eos_token are the model's own unless `more` has them. What the template refuses is an Error with its
  // words; one that does not end, or grows without end, is an Error too.
  std::string render(const Input& input) const;

 private:
  std::shared_ptr<const jinja::Program> program_;
  OrderedJson tokens_ = OrderedJson::object();  // bos_token, eos_token, ... as the model names them
};

}  // namespace qkv

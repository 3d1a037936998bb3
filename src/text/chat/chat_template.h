// Chat templates: renders a conversation with the model's own Jinja template.
#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/marked_text.h"
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
  // From a folder: chat_template.jinja, else chat_template in tokenizer_config.json (the one named "default" if there
  // are several). From a GGUF file: tokenizer.chat_template. None if the model has no template.
  static std::optional<ChatTemplate> load(const std::filesystem::path& folder_or_gguf);
  // Throws the Error for a model without a template.
  [[noreturn]] static void fail_missing(const std::filesystem::path& folder_or_gguf);

  struct Input {
    OrderedJson messages;
    bool add_generation_prompt = true;
    OrderedJson more = OrderedJson::object();  // other variables: tools, documents, enable_thinking, ...
    std::optional<std::time_t> now = {};       // for templates with the date; default: the current time
  };
  // bos_token and eos_token are the model's own unless `more` has them. raise_exception in the template is an Error
  // with its message; exceeding the step or size limits is an Error too.
  std::string render(const Input& input) const { return render_marked(input).bytes(); }
  // Knows which bytes come from messages and variables. A role that is a plain word counts as the template's.
  MarkedText render_marked(const Input& input) const;
  bool marks_answers() const;                  // has {% generation %}
  bool has_text(std::string_view text) const;  // in what the template itself writes

 private:
  std::shared_ptr<const jinja::Program> program_;
  OrderedJson tokens_ = OrderedJson::object();  // bos_token, eos_token, ... of the model
};

}  // namespace qkv

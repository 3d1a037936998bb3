// qkv chat --render: what a template makes of a conversation, without the model's weights.
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/printable.h"
#include "run/chat_setup.h"
#include "text/chat/chat_prompt.h"

namespace qkv::app {
namespace {

constexpr size_t kLargestConversation = 64 << 20;

OrderedJson read_json_file(const std::string& file) {
  QKV_CHECK(is_file(file), file, ": no such file", Hint("give a file with JSON"));
  return parse_ordered_json(read_file(file, kLargestConversation), file);
}

void check_messages(const OrderedJson& messages, const std::string& file) {
  QKV_CHECK(
      messages.is_array() && !messages.empty(), file, ": holds no list of messages but ",
      printable(messages.dump().substr(0, 60)),
      Hint("write [{\"role\": \"user\", \"content\": \"...\"}, ...], or {\"messages\": [...], \"tools\": [...]}"));
  for (size_t i = 0; i < messages.size(); ++i) {
    const OrderedJson& message = messages[i];
    const bool has_role = message.is_object() && message.contains("role") && message["role"].is_string();
    QKV_CHECK(has_role, file, ": message ", i + 1, " of ", messages.size(), " has no role: ",
              printable(message.dump(-1, ' ', false, OrderedJson::error_handler_t::replace).substr(0, 60)),
              Hint("each message is an object with \"role\", a string, and most have \"content\""));
    const bool no_content = !message.contains("content") || message["content"].is_null();
    const bool good = no_content || message["content"].is_string() || message["content"].is_array();
    QKV_CHECK(good, file, ": the content of message ", i + 1, " is ",
              printable(message["content"].dump().substr(0, 60)), Hint("content is a string or a list of parts"));
  }
}

// A list of messages, or an object with them and other variables.
ChatTemplate::Input read_conversation(const RenderRequest& request, OrderedJson variables) {
  ChatTemplate::Input input;
  OrderedJson read = read_json_file(request.messages);
  if (read.is_object() && read.contains("messages")) {
    for (const auto& [name, value] : read.items()) {
      if (name == "messages") continue;
      if (!variables.contains(name)) variables[name] = value;
    }
    input.messages = read["messages"];
  } else {
    input.messages = std::move(read);
  }
  check_messages(input.messages, request.messages);
  if (!request.tools.empty()) {
    variables["tools"] = read_json_file(request.tools);
    QKV_CHECK(variables["tools"].is_array(), request.tools, ": holds no list of tools but ",
              printable(variables["tools"].dump().substr(0, 60)),
              Hint("write [{\"type\": \"function\", \"function\": {\"name\": ..., \"parameters\": ...}}, ...]"));
  }
  if (const auto prompt = variables.find("add_generation_prompt"); prompt != variables.end()) {
    QKV_CHECK(prompt->is_boolean(), "add_generation_prompt is ", printable(prompt->dump().substr(0, 60)),
              Hint("true or false"));
    input.add_generation_prompt = prompt->get<bool>();
  }
  input.more = std::move(variables);
  return input;
}

// None if the model has none; then the reason goes to standard error.
std::optional<Tokenizer> tokenizer_of(const RenderRequest& request) {
  if (request.setup.model.empty() || (!request.json && request.setup.chat_template.empty())) return {};
  try {
    return Tokenizer::load(request.setup.model).without_truncation();
  } catch (const Error& error) {
    std::cerr << "no tokenizer: " << error.message() << '\n';
    return {};
  }
}

}  // namespace

void render_chat(const RenderRequest& request) {
  QKV_CHECK(!request.setup.model.empty() || !request.setup.chat_template.empty(),
            "--render has neither a MODEL nor a --template", Hint("qkv chat --template FILE --render MESSAGES.json"));
  const ChatTemplate chat_template = template_of(request.setup);
  const std::optional<Tokenizer> tokenizer = tokenizer_of(request);
  const OrderedJson variables = variables_of(request.setup, tokenizer ? &*tokenizer : nullptr);
  const MarkedText rendered = chat_template.render_marked(read_conversation(request, variables));
  if (!request.json) {
    std::cout << rendered.bytes() << std::flush;
    return;
  }
  OrderedJson out{{"text", rendered.bytes()}};
  if (tokenizer) out["ids"] = encode_rendered(*tokenizer, chat_template, rendered);
  for (size_t at = 0, end = 0; at < rendered.size(); at = end) {
    end = rendered.end_of_generated(at);
    if (rendered.is_generated(at)) out["generated"].push_back({at, end});
  }
  std::cout << out.dump(2, ' ', false, OrderedJson::error_handler_t::replace) << '\n';
}

}  // namespace qkv::app

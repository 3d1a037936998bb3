#include "run/chat_setup.h"

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/printable.h"
#include "text/chat/jinja/program.h"

namespace qkv::app {
namespace {

// JSON if it is JSON, otherwise the text itself: --set name=Anna.
OrderedJson value_of_setting(const std::string& text, const std::string& name) {
  try {
    return parse_ordered_json(text, "--set " + name);
  } catch (const Error&) {
    // Well-formed, but nested too deep, or with a key twice: not meant as a word.
    if (OrderedJson::accept(text)) throw;
    return text;
  }
}

}  // namespace

ChatTemplate template_of(const ChatSetup& setup) {
  if (!setup.chat_template.empty()) {
    QKV_CHECK(is_file(setup.chat_template), "--template ", printable(setup.chat_template), " is not a file",
              Hint("--template takes a file with a Jinja template, not the template itself"));
    return ChatTemplate::parse(read_file(setup.chat_template, jinja::kLargestSource), setup.chat_template);
  }
  if (std::optional<ChatTemplate> own = ChatTemplate::load(setup.model)) return *own;
  QKV_FAIL(setup.model, ": the model has no chat template, so it was not trained for chat",
           Hint("qkv run continues a text; --template FILE takes a template from a file"));
}

OrderedJson variables_of(const ChatSetup& setup, const Tokenizer* tokenizer) {
  OrderedJson variables = OrderedJson::object();
  if (tokenizer != nullptr && !setup.chat_template.empty()) {
    const auto name_token = [&](const char* name, std::optional<int32_t> id) {
      if (id) variables[name] = tokenizer->token(*id);
    };
    name_token("bos_token", tokenizer->named().bos);
    name_token("eos_token", tokenizer->named().eos);
  }
  for (const std::string& set : setup.set) {
    const size_t equals = set.find('=');
    QKV_CHECK(equals != set.npos && equals > 0, "--set ", printable(set), " is not NAME=VALUE",
              Hint("for example  --set enable_thinking=false"));
    const std::string name = set.substr(0, equals);
    variables[name] = value_of_setting(set.substr(equals + 1), name);
  }
  return variables;
}

}  // namespace qkv::app

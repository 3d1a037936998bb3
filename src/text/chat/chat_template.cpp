#include "text/chat/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "io/gguf.h"
#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/program.h"
#include "text/tokenizer/files/json_node.h"
#include "text/tokenizer/files/tokenizer_files.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 7> kTokens{"bos_token", "eos_token", "pad_token", "unk_token",
                                             "sep_token", "cls_token", "mask_token"};

std::optional<std::string> template_in(const JsonNode& config) {
  const auto found = config.find("chat_template");
  if (!found) return {};
  if (!found->json().is_array()) return found->string();
  for (size_t i = 0; i < found->size(); ++i) {
    if (found->at(i).at("name").string() == "default") return found->at(i).at("template").string();
  }
  QKV_FAIL(found->where(), " has ", found->size(), " templates but none is named \"default\"",
           Hint("name the one for plain conversations so"));
}

// A special token is given by its text, or by an object with its "content".
OrderedJson tokens_in(const JsonNode& config) {
  OrderedJson tokens = OrderedJson::object();
  for (const char* name : kTokens) {
    const auto found = config.find(name);
    if (found) tokens[name] = found->json().is_object() ? found->at("content").string() : found->string();
  }
  return tokens;
}

// GGUF gives special tokens by id.
OrderedJson tokens_in(const Gguf& file) {
  OrderedJson tokens = OrderedJson::object();
  if (!file.has("tokenizer.ggml.tokens")) return tokens;
  const std::vector<std::string_view> vocabulary = file.texts("tokenizer.ggml.tokens");
  for (const char* name : {"bos", "eos"}) {
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    if (!file.has(key)) continue;
    const int64_t id = file.integer(key);
    QKV_CHECK(id >= 0 && std::cmp_less(id, vocabulary.size()), file.name(), ": ", key, " is ", id, " but there are ",
              vocabulary.size(), " tokens", Hint("the file is damaged"));
    tokens[std::string(name) + "_token"] = vocabulary[static_cast<size_t>(id)];
  }
  return tokens;
}

}  // namespace

OrderedJson messages_json(const std::vector<ChatMessage>& messages) {
  OrderedJson out = OrderedJson::array();
  for (const ChatMessage& message : messages) {
    out.push_back(OrderedJson{{"role", message.role}, {"content", message.content}});
  }
  return out;
}

ChatTemplate ChatTemplate::parse(std::string_view source, std::string_view what) {
  ChatTemplate made;
  made.program_ = jinja::parse(source, what);
  return made;
}

std::optional<ChatTemplate> ChatTemplate::load(const fs::path& path) {
  QKV_CHECK(is_there(path), path.string(), ": no such file or folder", Hint("give a model's folder or a .gguf file"));
  if (!is_folder(path)) {
    const Gguf file = Gguf::open(path);
    if (!file.has("tokenizer.chat_template")) return {};
    ChatTemplate made = parse(file.text("tokenizer.chat_template"), path.string());
    made.tokens_ = tokens_in(file);
    return made;
  }
  std::optional<std::string> source;
  OrderedJson tokens = OrderedJson::object();
  fs::path from = path / "tokenizer_config.json";
  if (is_there(from)) {
    const Json config = read_tokenizer_settings(from);
    const JsonNode root(config, from.string());
    source = template_in(root);
    tokens = tokens_in(root);
  }
  if (is_there(path / "chat_template.jinja")) {
    from = path / "chat_template.jinja";
    source = read_file(from, jinja::kLargestSource);
  }
  if (!source) return {};
  ChatTemplate made = parse(*source, from.string());
  made.tokens_ = std::move(tokens);
  return made;
}

void ChatTemplate::fail_missing(const fs::path& path) {
  QKV_FAIL(path.string(), ": the model has no chat template, so it was not trained to converse",
           Hint("put a chat_template.jinja beside it, or train on plain text with objective causal"));
}

bool ChatTemplate::marks_answers() const {
  using Kind = jinja::Node::Kind;
  return std::ranges::any_of(program_->nodes, [](const jinja::Node& node) { return node.kind == Kind::generation; });
}

bool ChatTemplate::has_text(std::string_view text) const {
  return std::ranges::any_of(program_->constants,
                             [&](const MarkedText& constant) { return constant.bytes().find(text) != text.npos; });
}

MarkedText ChatTemplate::render_marked(const Input& input) const {
  using jinja::Origin;
  jinja::Interpreter machine(*program_, input.now ? *input.now : std::time(nullptr));
  // As in transformers, missing variables are none, not undefined.
  for (const char* name : {"tools", "documents"}) machine.define(name, jinja::Value::none());
  for (const auto& [name, token] : tokens_.items()) machine.define(name, machine.from_json(token, Origin::model));
  for (const auto& [name, value] : input.more.items()) {
    const bool names_token = std::ranges::find(kTokens, name) != kTokens.end();
    machine.define(name, machine.from_json(value, names_token ? Origin::model : Origin::message));
  }
  machine.define("messages", machine.from_messages(input.messages));
  machine.define("add_generation_prompt", jinja::Value::boolean(input.add_generation_prompt));
  return machine.run();
}

}  // namespace qkv

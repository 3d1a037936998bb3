#include "server/requests/chat_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "server/requests/limits.h"
#include "server/requests/response_format.h"
#include "server/requests/tool_grammar.h"
#include "text/chat/chat_prompt.h"

namespace qkv::server {
namespace {

// What a request may say to a template beside messages and tools.
void read_template_variables(const Fields& fields, ChatTemplate::Input& input) {
  if (const auto effort = fields.word("reasoning_effort", {"none", "minimal", "low", "medium", "high"})) {
    input.more["reasoning_effort"] = *effort;
  }
  const std::optional<Fields> given = fields.object("chat_template_kwargs");
  if (!given) return;
  for (const auto& [name, value] : given->json().items()) {
    if (name == "enable_thinking" || name == "thinking") {
      if (const auto flag = given->flag(name)) input.more[name] = *flag;
    } else if (name == "reasoning_effort") {
      input.more[name] = given->word(name, {"none", "minimal", "low", "medium", "high"}).value_or("medium");
    } else {
      given->fail(name, "is not known; enable_thinking, thinking and reasoning_effort are");
    }
  }
}

struct ToolChoice {
  enum class Kind { automatic, none, required } kind = Kind::automatic;
  std::string name = {};
};

ToolChoice read_tool_choice(const Fields& fields, const std::vector<std::string>& names) {
  const OrderedJson* given = fields.find("tool_choice");
  if (given == nullptr) return {};
  if (given->is_string()) {
    const std::string word = *fields.word("tool_choice", {"auto", "none", "required"});
    if (word == "none") return {.kind = ToolChoice::Kind::none};
    if (word == "auto") return {};
    if (names.empty()) fields.fail("tool_choice", "is required, but there are no tools");
    return {.kind = ToolChoice::Kind::required};
  }
  const Fields choice = *fields.object("tool_choice");
  const std::optional<Fields> function = choice.object("function");
  // /v1/responses has the name beside the type.
  const std::string name = (function ? *function : choice).need_text("name", {1, 64});
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    fields.fail("tool_choice", fmt::format("asks for {}, which is none of the tools", shown_json(OrderedJson(name))));
  }
  return {.kind = ToolChoice::Kind::required, .name = name};
}

const ChatTemplate& template_of(const ServedModel& model) {
  if (model.chat_template() != nullptr) return *model.chat_template();
  throw ApiError(400,
                 fmt::format("the model {} has no chat template, so it was not trained to converse; "
                             "/v1/completions continues a text",
                             model.name()),
                 "model");
}

// Renders and encodes; tools decide how the answer begins and how it is read.
void add_prompt(GenerationRequest& request, const Fields& fields, const ServedModel& model, Conversation conversation,
                Budget& budget) {
  const ChatTemplate& chat_template = template_of(model);
  const Tokenizer& tokenizer = model.model().tokenizer();
  const ToolChoice choice = read_tool_choice(fields, conversation.tool_names);
  request.several_calls = fields.flag("parallel_tool_calls").value_or(true);
  if (choice.kind == ToolChoice::Kind::none) conversation.input.more.erase("tools");
  if (conversation.input.more.contains("tools")) {
    request.tools = tool_style_of(chat_template);
    if (request.tools == ToolStyle::none) {
      fields.fail("tools", fmt::format("are not offered to {}: its template has no style of tool calls that this "
                                       "server knows",
                                       model.name()));
    }
    if (choice.kind == ToolChoice::Kind::required) {
      request.forced = forced_beginning(request.tools);
      request.constraint = masks_of(
          [&] { return call_grammar(request.tools, conversation.input.more.at("tools"), choice.name, budget); },
          "tools", model);
    }
  }
  MarkedText rendered;
  try {
    rendered = chat_template.render_marked(conversation.input);
  } catch (const Error& error) {
    throw ApiError(400, "the chat template refuses these messages: " + error.message(), "messages");
  }
  check_text_length(tokenizer, rendered.bytes(), model.context(), "messages", budget);
  GenerationPrompt prompt{.ids = encode_rendered(tokenizer, chat_template, rendered)};
  if (!request.forced.empty()) {
    const std::vector<int32_t> more = tokenizer.encode(request.forced, {.add_specials = false});
    prompt.ids.insert(prompt.ids.end(), more.begin(), more.end());
  }
  request.own_text = true;
  check_prompt_length(prompt, model, "messages");
  request.prompts.push_back(std::move(prompt));
}

// --- /v1/responses in the words of a chat ---

OrderedJson as_message(const Fields& item) {
  const std::string type = item.text("type", {1, kMostNameBytes}).value_or("message");
  if (type == "message") return item.json();
  if (type == "function_call") {
    return {
        {"role", "assistant"},
        {"tool_calls", OrderedJson::array({{{"id", item.need_text("call_id", {0, kMostNameBytes})},
                                            {"type", "function"},
                                            {"function",
                                             {{"name", item.need_text("name", {1, kMostNameBytes})},
                                              {"arguments", item.need_text("arguments", {0, kMostTextBytes})}}}}})}};
  }
  if (type == "function_call_output") {
    return {{"role", "tool"},
            {"tool_call_id", item.need_text("call_id", {0, kMostNameBytes})},
            {"content", item.need_text("output", {0, kMostTextBytes})}};
  }
  item.fail("type", fmt::format("is {} but this server reads message, function_call and function_call_output",
                                shown_json(OrderedJson(type))));
}

OrderedJson as_chat(const Fields& fields) {
  OrderedJson messages = OrderedJson::array();
  if (const auto text = fields.text("instructions", {0, kMostTextBytes})) {
    messages.push_back({{"role", "system"}, {"content", *text}});
  }
  const OrderedJson* input = fields.find("input");
  if (input == nullptr) fields.fail("input", "is missing: it is a string or a list of items");
  if (input->is_string()) {
    messages.push_back({{"role", "user"}, {"content", *input}});
  } else {
    size_t i = 0;
    for (const OrderedJson& item : *fields.list("input", {1, kMostMessages})) {
      messages.push_back(as_message(Fields(item, fmt::format("input[{}]", i++))));
    }
  }
  OrderedJson chat = fields.json();
  chat["messages"] = std::move(messages);
  if (const OrderedJson* tools = fields.list("tools", {0, kMostTools})) {
    OrderedJson offered = OrderedJson::array();
    size_t i = 0;
    for (const OrderedJson& tool : *tools) {
      const Fields one(tool, fmt::format("tools[{}]", i++));
      OrderedJson function = one.json();
      function.erase("type");
      offered.push_back({{"type", one.need_text("type", {1, kMostNameBytes})}, {"function", std::move(function)}});
    }
    chat["tools"] = std::move(offered);
  }
  return chat;
}

}  // namespace

GenerationRequest read_chat(const Fields& fields, const ServedModel& model, Budget& budget) {
  GenerationRequest request = read_generation(fields, model, {"max_completion_tokens", "max_tokens"}, budget);
  const bool logprobs = fields.flag("logprobs").value_or(false);
  const std::optional<int64_t> top = fields.whole("top_logprobs", {0, kMostTopLogprobs});
  if (top && !logprobs) fields.fail("top_logprobs", "needs logprobs to be true");
  if (logprobs) request.logprobs = top.value_or(0);
  Conversation conversation = read_conversation(fields);
  read_template_variables(fields, conversation.input);
  add_prompt(request, fields, model, std::move(conversation), budget);
  return request;
}

GenerationRequest read_responses(const Fields& fields, const ServedModel& model, Budget& budget) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"}) {
    if (fields.find(name) != nullptr) fields.fail(name, "is not supported: this server keeps no conversations");
  }
  if (fields.flag("background").value_or(false)) fields.fail("background", "is not supported: answers come at once");
  const OrderedJson chat = as_chat(fields);
  const Fields said(chat, "");
  GenerationRequest request = read_generation(said, model, {"max_output_tokens"}, budget);
  request.n = 1;
  if (const std::optional<Fields> text = fields.object("text")) {
    if (const std::optional<Fields> format = text->object("format")) {
      request.constraint = constraint_of(*format, "text.format", model, budget);
    }
  }
  add_prompt(request, said, model, read_conversation(said), budget);
  return request;
}

}  // namespace qkv::server

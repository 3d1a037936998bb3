#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "server/requests/chat_request.h"
#include "server/requests/limits.h"

namespace qkv::server {
namespace {

// A string, a list of text parts, or nothing.
OrderedJson read_content(const Fields& message, bool needed) {
  const OrderedJson* content = message.find("content");
  if (content == nullptr) {
    if (needed) message.fail("content", "is missing: it is a string or a list of text parts");
    return "";
  }
  if (content->is_string()) return *content;
  if (!content->is_array()) message.fail("content", "must be a string or a list of text parts");
  std::string text;
  size_t i = 0;
  for (const OrderedJson& part : *message.list("content", {0, kMostParts})) {
    const Fields fields(part, fmt::format("{}[{}]", message.path_of("content"), i++));
    const std::string type = fields.need_text("type", {1, kMostNameBytes});
    if (type != "text" && type != "input_text" && type != "output_text") {
      fields.fail("type", fmt::format("is {} but this server reads text alone", shown_json(OrderedJson(type))));
    }
    text += fields.need_text("text", {0, kMostTextBytes});
  }
  return text;
}

// Arguments come as JSON in a string; templates expect the object.
OrderedJson read_arguments(const Fields& function) {
  const std::string text = function.text("arguments", {0, kMostTextBytes}).value_or("{}");
  try {
    return parse_ordered_json(text.empty() ? "{}" : text, "arguments", {.depth = 48, .bytes = size_t{1} << 20});
  } catch (const Error&) {
    return text;
  }
}

OrderedJson read_calls(const Fields& message) {
  OrderedJson calls = OrderedJson::array();
  size_t i = 0;
  for (const OrderedJson& call : *message.list("tool_calls", {1, kMostToolCalls})) {
    const Fields fields(call, fmt::format("{}[{}]", message.path_of("tool_calls"), i++));
    const std::optional<Fields> function = fields.object("function");
    if (!function) fields.fail("function", "is missing: it has a name and arguments");
    calls.push_back(
        {{"id", fields.text("id", {0, kMostNameBytes}).value_or("")},
         {"type", "function"},
         {"function",
          {{"name", function->need_text("name", {1, kMostNameBytes})}, {"arguments", read_arguments(*function)}}}});
  }
  return calls;
}

OrderedJson read_message(const Fields& fields) {
  const std::optional<std::string> role = fields.word("role", {"system", "developer", "user", "assistant", "tool"});
  if (!role) fields.fail("role", "is missing: it must be system, developer, user, assistant or tool");
  const bool calls = *role == "assistant" && fields.find("tool_calls") != nullptr;
  OrderedJson message{{"role", *role == "developer" ? "system" : *role}, {"content", read_content(fields, !calls)}};
  if (const auto name = fields.text("name", {1, kMostNameBytes})) message["name"] = *name;
  if (calls) message["tool_calls"] = read_calls(fields);
  if (*role == "tool") {
    if (const auto id = fields.text("tool_call_id", {0, kMostNameBytes})) message["tool_call_id"] = *id;
  }
  if (*role == "assistant") {
    if (const auto text = fields.text("reasoning_content", {0, kMostTextBytes})) message["reasoning_content"] = *text;
  }
  return message;
}

bool is_function_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), fits);
}

}  // namespace

Conversation read_conversation(const Fields& fields) {
  Conversation made;
  made.input.messages = OrderedJson::array();
  const OrderedJson* messages = fields.list("messages", {1, kMostMessages});
  if (messages == nullptr) fields.fail("messages", "is missing: it is a list of messages");
  size_t i = 0;
  for (const OrderedJson& message : *messages) {
    made.input.messages.push_back(read_message(Fields(message, fmt::format("messages[{}]", i++))));
  }
  const OrderedJson* tools = fields.list("tools", {0, kMostTools});
  if (tools == nullptr || tools->empty()) return made;
  OrderedJson offered = OrderedJson::array();
  i = 0;
  for (const OrderedJson& tool : *tools) {
    const Fields one(tool, fmt::format("tools[{}]", i++));
    if (one.need_text("type", {1, kMostNameBytes}) != "function") {
      one.fail("type", "must be \"function\": this server has no tools of its own");
    }
    const std::optional<Fields> function = one.object("function");
    if (!function) one.fail("function", "is missing: it has a name and parameters");
    const std::string name = function->need_text("name", {1, 64});
    if (!is_function_name(name)) function->fail("name", "must be letters, digits, _ - and . alone");
    function->text("description", {0, kMostTextBytes});
    if (const OrderedJson* parameters = function->find("parameters"); parameters && !parameters->is_object()) {
      function->fail("parameters", "must be a JSON schema, an object");
    }
    made.tool_names.push_back(name);
    offered.push_back({{"type", "function"}, {"function", function->json()}});
  }
  made.input.more["tools"] = std::move(offered);
  return made;
}

}  // namespace qkv::server

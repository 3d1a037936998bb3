// /v1/responses: one text, as items of an output; a stream names every event.
#include <fmt/format.h>

#include "server/answers/answer.h"
#include "server/http/sse.h"

namespace qkv::server {
namespace {

class ResponsesForm : public AnswerForm {
 public:
  using AnswerForm::AnswerForm;

  OrderedJson whole(std::span<const WrittenChoice> choices) const override { return response(choices.front(), true); }

  std::string begin(std::span<const WrittenChoice> choices) override {
    const OrderedJson started = response(choices.front(), false);
    return joined(
        {event("response.created", {{"response", started}}), event("response.in_progress", {{"response", started}})});
  }

  std::string add(const WrittenChoice&, const AnswerPiece& piece) override {
    std::string out;
    if (!piece.text.empty()) {
      if (!message_open_) out += open_message();
      out += event(
          "response.output_text.delta",
          {{"item_id", message_id()}, {"output_index", message_index_}, {"content_index", 0}, {"delta", piece.text}});
      text_ += piece.text;
    }
    for (const ToolCall& call : piece.calls) out += whole_call(call);
    return out;
  }

  std::string end(const WrittenChoice&) override { return message_open_ ? close_message() : std::string(); }

  std::string close(std::span<const WrittenChoice> choices) override {
    const OrderedJson done = response(choices.front(), true);
    const bool whole = done["status"] == "completed";
    return event(whole ? "response.completed" : "response.incomplete", {{"response", done}});
  }

  std::string fail(const ApiError& error) const override {
    return sse("error", {{"type", "error"}, {"code", "server_error"}, {"message", error.message}, {"param", nullptr}});
  }

 private:
  std::string message_id() const { return "msg_" + info_.id; }

  std::string event(const char* name, OrderedJson data) {
    OrderedJson out{{"type", name}, {"sequence_number", events_++}};
    for (const auto& [key, value] : data.items()) out[key] = value;
    return sse(name, out);
  }

  // A braced list is evaluated from left to right, the operands of + are not.
  static std::string joined(std::initializer_list<std::string> events) {
    std::string all;
    for (const std::string& one : events) all += one;
    return all;
  }

  static OrderedJson text_part(const std::string& text) {
    return {{"type", "output_text"}, {"text", text}, {"annotations", OrderedJson::array()}};
  }
  OrderedJson message(const std::string& text, bool done) const {
    OrderedJson content = OrderedJson::array();
    if (done) content.push_back(text_part(text));
    return {{"id", message_id()},
            {"type", "message"},
            {"status", done ? "completed" : "in_progress"},
            {"role", "assistant"},
            {"content", std::move(content)}};
  }
  static OrderedJson call_item(const ToolCall& call, bool done) {
    return {{"id", "fc_" + call.id}, {"type", "function_call"}, {"status", done ? "completed" : "in_progress"},
            {"call_id", call.id},    {"name", call.name},       {"arguments", done ? call.arguments : ""}};
  }

  std::string open_message() {
    message_open_ = true;
    message_index_ = items_++;
    return joined(
        {event("response.output_item.added", {{"output_index", message_index_}, {"item", message("", false)}}),
         event("response.content_part.added", {{"item_id", message_id()},
                                               {"output_index", message_index_},
                                               {"content_index", 0},
                                               {"part", text_part("")}})});
  }

  std::string close_message() {
    message_open_ = false;
    const OrderedJson where{{"item_id", message_id()}, {"output_index", message_index_}, {"content_index", 0}};
    OrderedJson text = where, part = where;
    text["text"] = text_;
    part["part"] = text_part(text_);
    return joined(
        {event("response.output_text.done", text), event("response.content_part.done", part),
         event("response.output_item.done", {{"output_index", message_index_}, {"item", message(text_, true)}})});
  }

  std::string whole_call(const ToolCall& call) {
    const OrderedJson where{{"item_id", "fc_" + call.id}, {"output_index", items_++}};
    OrderedJson delta = where, done = where;
    delta["delta"] = done["arguments"] = call.arguments;
    done["name"] = call.name;
    const auto item = [&](bool whole) -> OrderedJson {
      return {{"output_index", where["output_index"]}, {"item", call_item(call, whole)}};
    };
    return joined(
        {event("response.output_item.added", item(false)), event("response.function_call_arguments.delta", delta),
         event("response.function_call_arguments.done", done), event("response.output_item.done", item(true))});
  }

  OrderedJson response(const WrittenChoice& choice, bool done) const {
    OrderedJson output = OrderedJson::array();
    if (done && (!choice.text.empty() || choice.calls.empty())) output.push_back(message(choice.text, true));
    for (const ToolCall& call : choice.calls) output.push_back(call_item(call, true));
    const bool cut = std::string_view(choice.finish_reason()) == "length";
    OrderedJson out{{"id", "resp_" + info_.id},
                    {"object", "response"},
                    {"created_at", info_.created},
                    {"status", !done ? "in_progress"
                               : cut ? "incomplete"
                                     : "completed"},
                    {"error", nullptr},
                    {"incomplete_details", nullptr},
                    {"model", info_.model},
                    {"output", std::move(output)},
                    {"usage", nullptr}};
    if (!done) return out;
    if (cut) out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    out["usage"] = {{"input_tokens", choice.prompt_tokens},
                    {"input_tokens_details", {{"cached_tokens", choice.cached}}},
                    {"output_tokens", choice.written},
                    {"output_tokens_details", {{"reasoning_tokens", 0}}},
                    {"total_tokens", choice.prompt_tokens + choice.written}};
    return out;
  }

  int64_t events_ = 0, items_ = 0, message_index_ = 0;
  bool message_open_ = false;
  std::string text_;
};

}  // namespace

std::unique_ptr<AnswerForm> responses_form(AnswerInfo info) {
  return std::make_unique<ResponsesForm>(std::move(info));
}

}  // namespace qkv::server

#include "server/answers/tool_calls.h"

#include <algorithm>
#include <optional>
#include <random>

#include "base/error.h"

namespace qkv::server {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>", kPython = "<|python_tag|>",
                           kCalls = "[TOOL_CALLS]", kSpaces = " \t\r\n";

std::string new_call_id(ToolStyle style) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::string id = style == ToolStyle::mistral ? "" : "call_";
  const size_t letters = style == ToolStyle::mistral ? 9 : 24;  // Mistral's templates insist on 9
  for (size_t i = 0; i < letters; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  const size_t end = text.find_last_not_of(kSpaces);
  return end == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

// The longest end of the text that begins the mark.
size_t begun(std::string_view text, std::string_view mark) {
  for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
    if (text.ends_with(mark.substr(0, n))) return n;
  }
  return 0;
}

std::optional<OrderedJson> json_in(std::string_view text) {
  try {
    return parse_ordered_json(text, "a tool call", {.depth = 48, .bytes = size_t{1} << 20, .tree = size_t{16} << 20});
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<ToolCall> call_in(const OrderedJson& json, ToolStyle style) {
  if (!json.is_object()) return std::nullopt;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) return std::nullopt;
  OrderedJson arguments = OrderedJson::object();
  for (const char* key : {"arguments", "parameters"}) {
    const auto found = json.find(key);
    if (found != json.end()) arguments = *found;
  }
  std::string text = json_text(arguments, -1);
  if (arguments.is_string()) text = arguments.get<std::string>();  // JSON in a string
  return ToolCall{.id = new_call_id(style), .name = name->get<std::string>(), .arguments = std::move(text)};
}

// Objects one after the other: Llama splits them by ';' or a line break.
std::vector<std::string_view> objects_in(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (depth++ == 0) begin = i;
    } else if ((c == '}' || c == ']') && depth > 0) {
      if (--depth == 0) parts.push_back(text.substr(begin, i + 1 - begin));
    } else if (depth == 0 && c != ';' && kSpaces.find(c) == kSpaces.npos) {
      return {};  // it is a text after all
    }
  }
  if (depth != 0 || quoted) return {};
  return parts;
}

}  // namespace

ToolStyle tool_style_of(const ChatTemplate& chat_template) {
  if (chat_template.has_text(kOpen)) return ToolStyle::hermes;
  if (chat_template.has_text("[TOOL_CALLS")) return ToolStyle::mistral;
  if (chat_template.has_text(kPython) || chat_template.has_text("\"parameters\": dictionary")) return ToolStyle::llama3;
  return ToolStyle::none;
}

std::vector<std::pair<int32_t, std::string>> tool_marks(ToolStyle style, const Tokenizer& tokenizer) {
  std::vector<std::string_view> marks;
  if (style == ToolStyle::hermes) marks = {kOpen, kClose};
  if (style == ToolStyle::llama3) marks = {kPython};
  if (style == ToolStyle::mistral) marks = {kCalls};
  std::vector<std::pair<int32_t, std::string>> found;
  for (const std::string_view mark : marks) {
    const std::optional<int32_t> id = tokenizer.id_of(mark);
    if (id && tokenizer.is_special(*id)) found.emplace_back(*id, mark);
  }
  return found;
}

std::string_view forced_beginning(ToolStyle style) {
  return style == ToolStyle::hermes ? "<tool_call>\n" : style == ToolStyle::mistral ? kCalls : "";
}

std::string_view ToolReader::opening() const {
  return style_ == ToolStyle::hermes ? kOpen : style_ == ToolStyle::mistral ? kCalls : kPython;
}

ToolReader::Read ToolReader::feed(std::string_view text) {
  held_ += text;
  Read read;
  for (bool more = true; more && !held_.empty();) {
    if (!in_call_) outside(read, false);
    more = in_call_ && inside(read, false);
  }
  return read;
}

ToolReader::Read ToolReader::finish() {
  Read read;
  for (bool more = true; more && !held_.empty();) {
    if (!in_call_) outside(read, true);
    more = in_call_ && inside(read, true);
  }
  return read;
}

// Text up to a call, without the spaces before it.
void ToolReader::outside(Read& read, bool last) {
  size_t call = style_ == ToolStyle::none ? held_.npos : held_.find(opening());
  const size_t word = held_.find_first_not_of(kSpaces);
  const bool begins = style_ == ToolStyle::llama3 && !wrote_ && word != held_.npos && held_[word] == '{';
  if (begins) call = std::min(call, word);
  in_call_ = call != held_.npos;
  size_t shown = in_call_ ? call : held_.size();
  if (style_ != ToolStyle::none && !last && !in_call_) shown -= begun(held_, opening());
  if (style_ != ToolStyle::none && (in_call_ || !last)) {
    const size_t end = held_.find_last_not_of(kSpaces, shown == 0 ? 0 : shown - 1);
    shown = shown == 0 || end == held_.npos ? 0 : end + 1;
  }
  wrote_ = wrote_ || shown > 0;
  read.text += held_.substr(0, shown);
  held_.erase(0, in_call_ ? call : shown);
}

// A call that is complete; false: more text is needed.
bool ToolReader::inside(Read& read, bool last) {
  if (style_ == ToolStyle::hermes) {
    const size_t close = held_.find(kClose, searched_);
    if (close == held_.npos && !last) {
      searched_ = held_.size() - std::min(held_.size(), kClose.size());
      return false;
    }
    searched_ = 0;
    const size_t end = close == held_.npos ? held_.size() : close + kClose.size();
    const std::string whole = held_.substr(0, end);
    const size_t body_end = std::min(close, held_.size());
    add_calls(read, std::string_view(whole).substr(kOpen.size(), body_end - kOpen.size()), whole);
    held_.erase(0, end);
    in_call_ = false;
    return true;
  }
  if (!last) return false;
  const std::string whole = std::move(held_);
  held_.clear();
  in_call_ = false;
  const std::string_view mark = opening();
  add_calls(read, std::string_view(whole).substr(whole.starts_with(mark) ? mark.size() : 0), whole);
  return false;
}

void ToolReader::add_calls(Read& read, std::string_view body, const std::string& as_text) {
  std::vector<ToolCall> calls;
  const auto add = [&](const OrderedJson& json) {
    std::optional<ToolCall> call = call_in(json, style_);
    if (call) calls.push_back(std::move(*call));
    return call.has_value();
  };
  bool good = true;
  if (style_ == ToolStyle::llama3) {
    for (const std::string_view part : objects_in(body)) {
      const std::optional<OrderedJson> json = json_in(part);
      good = good && json && add(*json);
    }
  } else {
    const std::optional<OrderedJson> json = json_in(trimmed(body));
    good = json.has_value();
    if (good && json->is_array()) {
      for (const OrderedJson& one : *json) good = good && add(one);
    } else if (good) {
      good = add(*json);
    }
  }
  if (!good || calls.empty()) {
    read.text += as_text;
    wrote_ = true;
    return;
  }
  for (ToolCall& call : calls) {
    if (called_ && !several_) return;
    called_ = true;
    read.calls.push_back(std::move(call));
  }
}

}  // namespace qkv::server

// Conversion between values and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/text.h"
#include "text/unicode/utf8.h"

namespace qkv::jinja {
namespace {

void append_json_text(MarkedText& out, const MarkedText& marked, bool ascii) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
  const std::string_view text = marked.bytes();
  out.append("\"");
  for (size_t at = 0; at < text.size();) {
    const std::string_view c = text.substr(at, utf8_length_from_lead(text[at]));
    const uint8_t mark = marked.mark(at);
    at += c.size();
    const size_t special = kEscaped.find(c[0]);
    const int32_t code = code_point(c);
    if (special != kEscaped.npos) {
      out.append(std::string{'\\', kLetters[special]}, mark);
    } else if (code < 0x20 || (ascii && code > 0x7E && code < 0x10000)) {
      out.append(fmt::format("\\u{:04x}", code), mark);
    } else if (ascii && code >= 0x10000) {
      out.append(fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF)), mark);
    } else {
      out.append(c, mark);
    }
  }
  out.append("\"");
}

// A role that is a plain word. Templates build control tokens from it, as in <|user|>.
bool is_plain_role(const std::string& role) {
  return std::ranges::all_of(role, [](char c) {
    return (c >= '0' && c <= '9') || c == '_' || c == '-' || ((c | 32) >= 'a' && (c | 32) <= 'z');
  });
}

}  // namespace

MarkedText Interpreter::json(const Value& value, const JsonStyle& style) {
  MarkedText out;
  append_json(out, value, style, 0);
  return out;
}

void Interpreter::append_json(MarkedText& out, const Value& value, const JsonStyle& style, int depth) {
  spend(1);
  check_value_depth(depth);
  check_size(out.size());
  const auto new_line = [&](int level) {
    if (!style.pretty) return;
    out.append("\n");
    const size_t bytes = style.indent.size() * static_cast<size_t>(level);
    check_size(out.size() + bytes);
    charge_text(bytes);
    for (int i = 0; i < level; ++i) out.append(style.indent);
  };
  switch (value.kind) {
    case Kind::none:
      out.append("null");
      return;
    case Kind::boolean:
      out.append(value.flag ? "true" : "false");
      return;
    case Kind::integer:
      out.append(std::to_string(value.integer));
      return;
    case Kind::number:
      if (std::isfinite(value.number)) out.append(number_text(value.number));
      if (std::isnan(value.number)) out.append("NaN");
      if (std::isinf(value.number)) out.append(value.number < 0 ? "-Infinity" : "Infinity");
      return;
    case Kind::text:
      charge_text(value.text->size(), 24);
      append_json_text(out, *value.text, style.ascii);
      return;
    case Kind::list:
      if (value.list->form > List::Form::tuple) break;
      out.append("[");
      for (size_t i = 0; i < value.list->items.size(); ++i) {
        if (i > 0) out.append(style.item_separator);
        new_line(depth + 1);
        append_json(out, value.list->items[i], style, depth + 1);
      }
      if (!value.list->items.empty()) new_line(depth);
      out.append("]");
      return;
    case Kind::dict: {
      auto members = value.dict->items;
      spend(members.size());
      if (style.sorted) {
        std::ranges::stable_sort(members, [&](const auto& a, const auto& b) { return less(a.first, b.first); });
      }
      out.append("{");
      for (size_t i = 0; i < members.size(); ++i) {
        if (i > 0) out.append(style.item_separator);
        new_line(depth + 1);
        const Value& key = members[i].first;
        if (key.kind > Kind::text) fail(std::string("a ") + name_of(key) + " is a key of JSON", "use strings as keys");
        append_json(out, key.is(Kind::text) ? key : text(json(key, {})), style, depth + 1);
        out.append(style.key_separator);
        append_json(out, members[i].second, style, depth + 1);
      }
      if (!members.empty()) new_line(depth);
      out.append("}");
      return;
    }
    default:
      break;
  }
  if (value.is(Kind::undefined)) fail_undefined(value);
  fail(std::string("a ") + name_of(value) + " cannot be JSON", "give tojson a list, a dict, a string or a number");
}

uint8_t Interpreter::mark_of(Origin origin) {
  if (origin == Origin::model) return MarkedText::kTemplate;
  if (origin == Origin::message) return MarkedText::kMessage;
  const uint8_t mark = answer_mark_;
  answer_mark_ = mark == MarkedText::kLastAnswer ? MarkedText::kFirstAnswer : static_cast<uint8_t>(mark + 1);
  return mark;
}

Value Interpreter::from_messages(const OrderedJson& messages) {
  if (!messages.is_array()) return from_json(messages, Origin::message);
  std::vector<Value> values;
  for (const OrderedJson& message : messages) {
    const auto found = message.is_object() ? message.find("role") : message.end();
    const bool has_role = message.is_object() && found != message.end() && found->is_string();
    const std::string role = has_role ? found->get<std::string>() : std::string();
    const bool answers = role == "assistant" || role == "model";
    values.push_back(from_json(message, answers ? Origin::answer : Origin::message, 1));
    if (has_role && is_plain_role(role)) *lookup(*values.back().dict, "role") = text(role);
  }
  return list(std::move(values));
}

Value Interpreter::from_json(const OrderedJson& json, Origin origin, int depth) {
  check_value_depth(depth);
  const auto given_text = [&](const std::string& given) {
    if (!is_utf8(given)) fail("a text given to the template is not UTF-8", "send UTF-8");
    return text({given, mark_of(origin)});
  };
  switch (json.type()) {
    case OrderedJson::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case OrderedJson::value_t::number_integer:
      return Value::integer_of(json.get<int64_t>());
    case OrderedJson::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      if (!std::in_range<int64_t>(number)) fail("a number does not fit in 64 bits", "keep numbers below 9.2e18");
      return Value::integer_of(static_cast<int64_t>(number));
    }
    case OrderedJson::value_t::number_float:
      return Value::number_of(json.get<double>());
    case OrderedJson::value_t::string:
      return given_text(json.get_ref<const std::string&>());
    case OrderedJson::value_t::array: {
      std::vector<Value> values;
      for (const auto& part : json) values.push_back(from_json(part, origin, depth + 1));
      return list(std::move(values));
    }
    case OrderedJson::value_t::object: {
      const Value made = dict();
      for (const auto& [key, part] : json.get_ref<const OrderedJson::object_t&>()) {
        const Value name = given_text(key);
        made.dict->items.emplace_back(name, from_json(part, origin, depth + 1));
      }
      return made;
    }
    default:
      return Value::none();
  }
}

}  // namespace qkv::jinja

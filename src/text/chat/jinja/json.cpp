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

void append_json_text(std::string& out, std::string_view text, bool ascii) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const std::string_view c = text.substr(at, utf8_length_from_lead(text[at]));
    at += c.size();
    const size_t special = kEscaped.find(c[0]);
    const int32_t code = code_point(c);
    if (special != kEscaped.npos) {
      out += {'\\', kLetters[special]};
    } else if (code < 0x20 || (ascii && code > 0x7E && code < 0x10000)) {
      out += fmt::format("\\u{:04x}", code);
    } else if (ascii && code >= 0x10000) {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
    } else {
      out += c;
    }
  }
  out += '"';
}

Value given_text(Interpreter& interp, const std::string& text) {
  if (!is_utf8(text)) interp.fail("a text given to the template is not UTF-8", "send UTF-8");
  return interp.text(text);
}

}  // namespace

std::string Interpreter::json(const Value& value, const JsonStyle& style) {
  std::string out;
  append_json(out, value, style, 0);
  return out;
}

void Interpreter::append_json(std::string& out, const Value& value, const JsonStyle& style, int depth) {
  spend(1);
  check_value_depth(depth);
  check_size(out.size());
  const auto new_line = [&](int level) {
    if (!style.pretty) return;
    out += '\n';
    const size_t bytes = style.indent.size() * static_cast<size_t>(level);
    check_size(out.size() + bytes);
    charge_text(bytes);
    for (int i = 0; i < level; ++i) out += style.indent;
  };
  switch (value.kind) {
    case Kind::none:
      out += "null";
      return;
    case Kind::boolean:
      out += value.flag ? "true" : "false";
      return;
    case Kind::integer:
      out += std::to_string(value.integer);
      return;
    case Kind::number:
      if (std::isfinite(value.number)) out += number_text(value.number);
      if (std::isnan(value.number)) out += "NaN";
      if (std::isinf(value.number)) out += value.number < 0 ? "-Infinity" : "Infinity";
      return;
    case Kind::text:
      charge_text(value.text->size(), 24);
      append_json_text(out, *value.text, style.ascii);
      return;
    case Kind::list:
      if (value.list->form > List::Form::tuple) break;
      out += '[';
      for (size_t i = 0; i < value.list->items.size(); ++i) {
        if (i > 0) out += style.item_separator;
        new_line(depth + 1);
        append_json(out, value.list->items[i], style, depth + 1);
      }
      if (!value.list->items.empty()) new_line(depth);
      out += ']';
      return;
    case Kind::dict: {
      auto members = value.dict->items;
      spend(members.size());
      if (style.sorted) {
        std::ranges::stable_sort(members, [&](const auto& a, const auto& b) { return less(a.first, b.first); });
      }
      out += '{';
      for (size_t i = 0; i < members.size(); ++i) {
        if (i > 0) out += style.item_separator;
        new_line(depth + 1);
        const Value& key = members[i].first;
        if (key.kind > Kind::text) fail(std::string("a ") + name_of(key) + " is a key of JSON", "use strings as keys");
        append_json(out, key.is(Kind::text) ? key : text(json(key, {})), style, depth + 1);
        out += style.key_separator;
        append_json(out, members[i].second, style, depth + 1);
      }
      if (!members.empty()) new_line(depth);
      out += '}';
      return;
    }
    default:
      break;
  }
  if (value.is(Kind::undefined)) fail_undefined(value);
  fail(std::string("a ") + name_of(value) + " cannot be JSON", "give tojson a list, a dict, a string or a number");
}

Value Interpreter::from_json(const OrderedJson& json, int depth) {
  check_value_depth(depth);
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
      return given_text(*this, json.get_ref<const std::string&>());
    case OrderedJson::value_t::array: {
      std::vector<Value> values;
      for (const auto& part : json) values.push_back(from_json(part, depth + 1));
      return list(std::move(values));
    }
    case OrderedJson::value_t::object: {
      const Value made = dict();
      for (const auto& [key, part] : json.get_ref<const OrderedJson::object_t&>()) {
        made.dict->items.emplace_back(given_text(*this, key), from_json(part, depth + 1));
      }
      return made;
    }
    default:
      return Value::none();
  }
}

}  // namespace qkv::jinja

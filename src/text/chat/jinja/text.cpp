#include "text/chat/jinja/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/chat/jinja/interpreter.h"
#include "text/unicode/python_text.h"
#include "text/unicode/utf8.h"

namespace qkv::jinja {
namespace {

bool is_printable(int32_t code) {
  if (code < 0x7F) return code >= 0x20;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string escaped_code(int32_t code) {
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  if (code < 0x10000) return fmt::format("\\u{:04x}", code);
  return fmt::format("\\U{:08x}", code);
}

}  // namespace

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  const double size = std::fabs(number);
  char buffer[32];
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = plain ? std::to_chars(buffer, buffer + 32, number, std::chars_format::fixed).ptr
                         : std::to_chars(buffer, buffer + 32, number, std::chars_format::scientific).ptr;
  std::string out(buffer, end);
  if (plain && out.find('.') == out.npos) out += ".0";
  return out;
}

std::string repr_text(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const std::string_view c = text.substr(at, utf8_length_from_lead(text[at]));
    at += c.size();
    const int32_t code = code_point(c);
    if (c[0] == quote || c[0] == '\\') {
      out += {'\\', c[0]};
    } else if (code == '\n' || code == '\r' || code == '\t') {
      out += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (is_printable(code)) {
      out += c;
    } else {
      out += escaped_code(code);
    }
  }
  return out + quote;
}

std::string escaped(Interpreter& interp, std::string_view text) {
  interp.charge_text(text.size(), 16);
  std::string out;
  for (const char c : text) {
    interp.check_size(out.size());
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string stripped(Interpreter& interp, std::string_view text, std::optional<std::string_view> characters,
                     Ends ends) {
  if (characters) interp.charge_text(text.size(), characters->size());
  const std::string_view left = python_strip(text, characters, ends);
  interp.charge_text(text.size() - left.size(), 32);
  return std::string(left);
}

std::string repeated(Interpreter& interp, std::string_view text, int64_t times) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(text.size(), static_cast<size_t>(times), &bytes)) bytes = SIZE_MAX;
  interp.charge_new_text(bytes);
  std::string out;
  out.reserve(bytes);
  for (int64_t i = 0; i < times && bytes > 0; ++i) out += text;
  return out;
}

std::string replaced(Interpreter& interp, std::string_view text, std::string_view from, std::string_view to,
                     int64_t most) {
  std::string out;
  size_t at = 0;
  for (; most != 0; most -= most > 0 ? 1 : 0) {
    const size_t found = from.empty() ? at : interp.find(text, from, at);
    if (found > text.size()) break;
    interp.spend(1);
    interp.check_size(out.size());
    out += text.substr(at, found - at);
    out += to;
    at = found + from.size();
    if (!from.empty()) continue;
    // An empty `from` matches between all characters and at both ends.
    if (at == text.size()) return out;
    const size_t size = utf8_length_from_lead(text[at]);
    out += text.substr(at, size);
    at += size;
  }
  return out += text.substr(at);
}

std::string joined(Interpreter& interp, std::string_view between, const std::vector<Value>& values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += between;
    values[i].is(Kind::text) ? out += *values[i].text : out += interp.str(values[i]);
    interp.check_size(out.size());
    interp.spend(1);
  }
  return out;
}

std::string indented(Interpreter& interp, std::string_view text, std::string_view by, bool first, bool blank) {
  interp.charge_text(text.size(), 16);
  std::string out = first ? std::string(by) : "";
  const std::string ended = std::string(text) + "\n";
  const auto lines = python_lines(ended, LineEnds::drop);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (blank || !lines[i].empty())) out += by;
    out += lines[i];
    interp.check_size(out.size());
    interp.charge_text(by.size());
  }
  return out;
}

std::string Interpreter::str(const Value& value) {
  if (value.is(Kind::text)) return *value.text;
  if (value.is(Kind::undefined)) return "";
  std::string out;
  append_repr(out, value, 0);
  return out;
}

void Interpreter::append_repr(std::string& out, const Value& value, int depth) {
  spend(1);
  check_value_depth(depth);
  check_size(out.size());
  const auto all = [&](std::span<const Value> values, const char* open, const char* close) {
    out += open;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ", ";
      append_repr(out, values[i], depth + 1);
    }
    out += close;
  };
  switch (value.kind) {
    case Kind::undefined:
      out += "Undefined";
      return;
    case Kind::none:
      out += "None";
      return;
    case Kind::boolean:
      out += value.flag ? "True" : "False";
      return;
    case Kind::integer:
      out += std::to_string(value.integer);
      return;
    case Kind::number:
      out += number_text(value.number);
      return;
    case Kind::text:
      charge_text(value.text->size(), 24);
      out += value.safe ? "Markup(" + repr_text(*value.text) + ")" : repr_text(*value.text);
      return;
    case Kind::list: {
      const List& list = *value.list;
      if (list.form == List::Form::list) return all(list.items, "[", "]");
      if (list.form == List::Form::tuple) return all(list.items, "(", list.items.size() == 1 ? ",)" : ")");
      if (list.form == List::Form::view) {
        out += list.view_name;
        return all(list.items, "([", "])");
      }
      if (list.form == List::Form::range) {
        out += fmt::format("range({}, {}", list.start, list.stop);
        out += list.step == 1 ? ")" : fmt::format(", {})", list.step);
        return;
      }
      fail("a generator cannot be printed", "make it a list first: |list");
    }
    case Kind::dict:
    case Kind::name_space:
      out += value.is(Kind::dict) ? "{" : "<Namespace {";
      for (size_t i = 0; i < value.dict->items.size(); ++i) {
        if (i > 0) out += ", ";
        append_repr(out, value.dict->items[i].first, depth + 1);
        out += ": ";
        append_repr(out, value.dict->items[i].second, depth + 1);
      }
      out += value.is(Kind::dict) ? "}" : "}>";
      return;
    case Kind::loop:
      out += fmt::format("<LoopContext {}/{}>", value.loop->index0 + 1, loop_length(*value.loop));
      return;
    case Kind::callable:
      if (!value.callable->macro) fail("a function cannot be printed", "call it, with brackets");
      out += "<Macro " + repr_text(*value.callable->macro->text) + ">";
  }
}

}  // namespace qkv::jinja

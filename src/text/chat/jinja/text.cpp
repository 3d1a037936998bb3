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

namespace {

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

MarkedText repr_text(const MarkedText& marked) {
  const std::string_view text = marked.bytes();
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  const std::string ends(1, quote);
  MarkedText out(ends);
  for (size_t at = 0; at < text.size();) {
    const std::string_view c = text.substr(at, utf8_length_from_lead(text[at]));
    const uint8_t mark = marked.mark(at);
    at += c.size();
    const int32_t code = code_point(c);
    if (c[0] == quote || c[0] == '\\') {
      out.append(std::string{'\\', c[0]}, mark);
    } else if (code == '\n' || code == '\r' || code == '\t') {
      out.append(code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t", mark);
    } else if (is_printable(code)) {
      out.append(c, mark);
    } else {
      out.append(escaped_code(code), mark);
    }
  }
  out.append(ends);
  return out;
}

MarkedText escaped(Interpreter& interp, const MarkedText& text) {
  interp.charge_text(text.size(), 16);
  MarkedText out;
  const std::string_view bytes = text.bytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    interp.check_size(out.size());
    const uint8_t mark = text.mark(at);
    switch (bytes[at]) {
      case '&':
        out.append("&amp;", mark);
        break;
      case '<':
        out.append("&lt;", mark);
        break;
      case '>':
        out.append("&gt;", mark);
        break;
      case '\'':
        out.append("&#39;", mark);
        break;
      case '"':
        out.append("&#34;", mark);
        break;
      default:
        out.append(bytes.substr(at, 1), mark);
    }
  }
  return out;
}

MarkedText stripped(Interpreter& interp, const MarkedText& text, std::optional<std::string_view> characters,
                    Ends ends) {
  if (characters) interp.charge_text(text.size(), characters->size());
  const std::string_view left = python_strip(text.bytes(), characters, ends);
  interp.charge_text(text.size() - left.size(), 32);
  return text.part(left);
}

MarkedText repeated(Interpreter& interp, const MarkedText& text, int64_t times) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(text.size(), static_cast<size_t>(times), &bytes)) bytes = SIZE_MAX;
  interp.charge_new_text(bytes);
  MarkedText out;
  for (int64_t i = 0; i < times && bytes > 0; ++i) out.append(text);
  return out;
}

MarkedText replaced(Interpreter& interp, const MarkedText& marked, const Replacement& what) {
  const std::string_view text = marked.bytes(), from = what.from;
  MarkedText out;
  size_t at = 0;
  for (int64_t most = what.most; most != 0; most -= most > 0 ? 1 : 0) {
    const size_t found = from.empty() ? at : interp.find(text, from, at);
    if (found > text.size()) break;
    interp.spend(1);
    interp.check_size(out.size());
    out.append(marked, at, found - at);
    out.append(what.to);
    at = found + from.size();
    if (!from.empty()) continue;
    // An empty `from` matches between all characters and at both ends.
    if (at == text.size()) return out;
    const size_t size = utf8_length_from_lead(text[at]);
    out.append(marked, at, size);
    at += size;
  }
  out.append(marked, at, text.size() - at);
  return out;
}

MarkedText joined(Interpreter& interp, const MarkedText& between, const std::vector<Value>& values) {
  MarkedText out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out.append(between);
    values[i].is(Kind::text) ? out.append(*values[i].text) : out.append(interp.str(values[i]));
    interp.check_size(out.size());
    interp.spend(1);
  }
  return out;
}

MarkedText indented(Interpreter& interp, const MarkedText& text, const MarkedText& by, bool first, bool blank) {
  interp.charge_text(text.size(), 16);
  MarkedText out = first ? by : MarkedText();
  MarkedText ended = text;
  ended.append("\n");
  const auto lines = python_lines(ended.bytes(), LineEnds::drop);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    if (i > 0 && (blank || !lines[i].empty())) out.append(by);
    out.append(ended, lines[i]);
    interp.check_size(out.size());
    interp.charge_text(by.size());
  }
  return out;
}

MarkedText case_changed(Interpreter& interp, const MarkedText& text, std::string (*change)(std::string_view)) {
  interp.charge_case_change(text.bytes());
  const std::string all = change(text.bytes());
  if (!text.has_marks()) return all;
  MarkedText out;
  for (size_t at = 0; at < text.size();) {
    const uint8_t mark = text.mark(at);
    at = text.end_of_run(at);
    const std::string_view before = std::string_view(text.bytes()).substr(0, at);
    interp.charge_case_change(before);
    const size_t end = at == text.size() ? all.size() : std::min(change(before).size(), all.size());
    if (end > out.size()) out.append(std::string_view(all).substr(out.size(), end - out.size()), mark);
  }
  return out;
}

MarkedText padded(Interpreter& interp, const MarkedText& text, const Padded& how) {
  interp.charge_text(text.size(), 4);
  const size_t length = python_length(text.bytes());
  const size_t missing = how.width > length ? how.width - length : 0;
  // As str.center: of an odd number, the left side has one more if the width is odd.
  const size_t left = how.text_at == Ends::left    ? 0
                      : how.text_at == Ends::right ? missing
                                                   : missing / 2 + (missing & how.width & 1);
  MarkedText out = repeated(interp, how.fill, static_cast<int64_t>(left));
  out.append(text);
  out.append(repeated(interp, how.fill, static_cast<int64_t>(missing - left)));
  return out;
}

MarkedText Interpreter::str(const Value& value) {
  if (value.is(Kind::text)) return *value.text;
  if (value.is(Kind::undefined)) return {};
  return repr(value);
}

MarkedText Interpreter::repr(const Value& value) {
  MarkedText out;
  append_repr(out, value, 0);
  return out;
}

void Interpreter::append_repr(MarkedText& out, const Value& value, int depth) {
  spend(1);
  check_value_depth(depth);
  check_size(out.size());
  const auto all = [&](std::span<const Value> values, const char* open, const char* close) {
    out.append(open);
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out.append(", ");
      append_repr(out, values[i], depth + 1);
    }
    out.append(close);
  };
  switch (value.kind) {
    case Kind::undefined:
      out.append("Undefined");
      return;
    case Kind::none:
      out.append("None");
      return;
    case Kind::boolean:
      out.append(value.flag ? "True" : "False");
      return;
    case Kind::integer:
      out.append(std::to_string(value.integer));
      return;
    case Kind::number:
      out.append(number_text(value.number));
      return;
    case Kind::text:
      charge_text(value.text->size(), 24);
      if (value.safe) out.append("Markup(");
      out.append(repr_text(*value.text));
      if (value.safe) out.append(")");
      return;
    case Kind::list: {
      const List& list = *value.list;
      if (list.form == List::Form::list) return all(list.items, "[", "]");
      if (list.form == List::Form::tuple) return all(list.items, "(", list.items.size() == 1 ? ",)" : ")");
      if (list.form == List::Form::view) {
        out.append(list.view_name);
        return all(list.items, "([", "])");
      }
      if (list.form == List::Form::range) {
        out.append(fmt::format("range({}, {}", list.start, list.stop));
        out.append(list.step == 1 ? ")" : fmt::format(", {})", list.step));
        return;
      }
      fail("a generator cannot be printed", "make it a list first: |list");
    }
    case Kind::dict:
    case Kind::name_space:
      out.append(value.is(Kind::dict) ? "{" : "<Namespace {");
      for (size_t i = 0; i < value.dict->items.size(); ++i) {
        if (i > 0) out.append(", ");
        append_repr(out, value.dict->items[i].first, depth + 1);
        out.append(": ");
        append_repr(out, value.dict->items[i].second, depth + 1);
      }
      out.append(value.is(Kind::dict) ? "}" : "}>");
      return;
    case Kind::loop:
      out.append(fmt::format("<LoopContext {}/{}>", value.loop->index0 + 1, loop_length(*value.loop)));
      return;
    case Kind::callable:
      if (!value.callable->macro) fail("a function cannot be printed", "call it, with brackets");
      out.append("<Macro ");
      out.append(repr_text(*value.callable->macro->text));
      out.append(">");
  }
}

}  // namespace qkv::jinja

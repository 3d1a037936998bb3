// Methods of strings.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/methods.h"
#include "text/chat/jinja/text.h"
#include "text/unicode/python_text.h"
#include "text/unicode/utf8.h"

namespace qkv::jinja {
namespace {

template <Ends ends>
Value strip(Interpreter& interp, const Call& call) {
  std::optional<std::string_view> characters;
  if (call.has[0] && !call.at[0].is(Kind::none)) characters = text_argument(interp, call, 0);
  return interp.text(stripped(interp, *call.self.text, characters, ends));
}

Value parts_of(Interpreter& interp, const MarkedText& whole, const std::vector<std::string_view>& views,
               List::Form form) {
  std::vector<Value> parts;
  for (const std::string_view part : views) parts.push_back(interp.text(whole.part(part)));
  return interp.list(std::move(parts), form);
}

template <Ends from>
Value split(Interpreter& interp, const Call& call) {
  PythonSplit options{.from = from};
  if (call.has[0] && !call.at[0].is(Kind::none)) options.separator = text_argument(interp, call, 0);
  if (options.separator && options.separator->empty())
    interp.fail("split by an empty string", "use |list for characters");
  const int64_t most = call.has[1] ? integer_argument(interp, call, 1) : -1;
  if (most >= 0) options.max_splits = static_cast<size_t>(most);
  const std::string_view whole = call.self.text->bytes();
  // rsplit compares the separator at every position.
  const size_t shortest = options.separator ? options.separator->size() : 1;
  interp.charge_text(whole.size(), from == Ends::right ? 8 * shortest : 8);
  interp.spend(std::min(options.max_splits, whole.size() / shortest / 2));
  return parts_of(interp, *call.self.text, python_split(whole, options), List::Form::list);
}

Value split_lines(Interpreter& interp, const Call& call) {
  interp.spend(call.self.text->size() / 2);
  const LineEnds ends = truth(call.at[0]) ? LineEnds::keep : LineEnds::drop;
  return parts_of(interp, *call.self.text, python_lines(call.self.text->bytes(), ends), List::Form::list);
}

// The part of the text between the arguments start and end, in characters as Python counts them.
struct Window {
  std::string_view text;
  int64_t start = 0;
  bool exists = true;  // false if start lies behind end: then not even "" is found
};

Window window_of(Interpreter& interp, const Call& call, size_t first_argument) {
  const std::string_view whole = call.self.text->bytes();
  Window window{.text = whole};
  if (!call.has[first_argument] && !call.has[first_argument + 1]) return window;
  const auto length = static_cast<int64_t>(interp.length(call.self));
  const auto bound = [&](size_t at, int64_t otherwise) {
    if (!call.has[at] || call.at[at].is(Kind::none)) return otherwise;
    const int64_t given = integer_argument(interp, call, at);
    return given < 0 ? std::max<int64_t>(0, given < -length ? 0 : given + length) : given;
  };
  const int64_t start = bound(first_argument, 0), end = std::min(bound(first_argument + 1, length), length);
  window.exists = start <= end;
  if (!window.exists) return window;
  window.start = start;
  window.text.remove_prefix(bytes_of_characters(window.text, static_cast<size_t>(start)));
  window.text = window.text.substr(0, bytes_of_characters(window.text, static_cast<size_t>(end - start)));
  interp.charge_text(whole.size(), 8);
  return window;
}

template <bool at_end>
Value has_affix(Interpreter& interp, const Call& call) {
  const Window window = window_of(interp, call, 1);
  const auto fits = [&](const Value& affix) {
    if (!affix.is(Kind::text))
      interp.fail(std::string("a ") + name_of(affix) + " where a string is wanted", "give a string");
    const std::string_view wanted = affix.text->bytes();
    return window.exists && (at_end ? window.text.ends_with(wanted) : window.text.starts_with(wanted));
  };
  if (!call.at[0].is(Kind::list)) return Value::boolean(fits(call.at[0]));
  return Value::boolean(std::ranges::any_of(interp.items(call.at[0]), fits));
}

template <std::string (*change)(std::string_view)>
Value method_case(Interpreter& interp, const Call& call) {
  return interp.text(case_changed(interp, *call.self.text, change));
}

Value method_replace(Interpreter& interp, const Call& call) {
  text_argument(interp, call, 1);
  return interp.text(replaced(interp, *call.self.text,
                              {.from = text_argument(interp, call, 0),
                               .to = *call.at[1].text,
                               .most = call.has[2] ? integer_argument(interp, call, 2) : -1}));
}

// The character position of a string, or -1.
template <Ends from>
int64_t position(Interpreter& interp, const Call& call) {
  const Window window = window_of(interp, call, 1);
  const std::string_view wanted = text_argument(interp, call, 0);
  if (!window.exists) return -1;
  size_t at = 0;
  if (from == Ends::right) {
    interp.charge_text(window.text.size(), 8 * std::max<size_t>(1, wanted.size()));
    at = window.text.rfind(wanted);
  } else {
    at = interp.find(window.text, wanted);
  }
  if (at == std::string::npos) return -1;
  return window.start + static_cast<int64_t>(python_length(window.text.substr(0, at)));
}

template <Ends from, bool must_be>
Value find(Interpreter& interp, const Call& call) {
  const int64_t at = position<from>(interp, call);
  if (must_be && at < 0) interp.fail("index finds no such text", "test it with 'in' first");
  return Value::integer_of(at);
}

Value count_in_text(Interpreter& interp, const Call& call) {
  const Window window = window_of(interp, call, 1);
  const std::string_view wanted = text_argument(interp, call, 0);
  if (!window.exists) return Value::integer_of(0);
  if (wanted.empty()) return Value::integer_of(static_cast<int64_t>(python_length(window.text)) + 1);
  int64_t times = 0;
  for (size_t at = 0; (at = interp.find(window.text, wanted, at)) != std::string::npos; at += wanted.size()) ++times;
  return Value::integer_of(times);
}

Value method_join(Interpreter& interp, const Call& call) {
  const std::vector<Value> values = interp.items(call.at[0]);
  for (const Value& value : values) {
    if (!value.is(Kind::text))
      interp.fail(std::string("join meets a ") + name_of(value), "use the filter: list|join(', ')");
  }
  return interp.text(joined(interp, *call.self.text, values));
}

template <Ends from>
Value partition(Interpreter& interp, const Call& call) {
  const std::string_view whole = call.self.text->bytes(), by = text_argument(interp, call, 0);
  if (by.empty()) interp.fail("partition by an empty string", "name the text that stands between");
  interp.charge_text(whole.size(), from == Ends::right ? 8 * by.size() : 8);
  const size_t at = from == Ends::right ? whole.rfind(by) : interp.find(whole, by);
  const std::string_view none = whole.substr(0, 0);
  std::vector<std::string_view> parts{whole, none, none};
  if (at != whole.npos) {
    parts = {whole.substr(0, at), whole.substr(at, by.size()), whole.substr(at + by.size())};
  } else if (from == Ends::right) {
    parts = {none, none, whole};
  }
  return parts_of(interp, *call.self.text, parts, List::Form::tuple);
}

template <bool at_end>
Value remove_affix(Interpreter& interp, const Call& call) {
  std::string_view text = call.self.text->bytes();
  const std::string_view affix = text_argument(interp, call, 0);
  if (!at_end && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (at_end && text.ends_with(affix)) text.remove_suffix(affix.size());
  return interp.text(call.self.text->part(text));
}

template <Ends text_at>
Value pad(Interpreter& interp, const Call& call) {
  if (call.has[1]) text_argument(interp, call, 1);
  const MarkedText fill = call.has[1] ? *call.at[1].text : MarkedText(" ");
  if (python_length(fill.bytes()) != 1)
    interp.fail("the fill is " + std::to_string(fill.size()) + " bytes", "give a character");
  const int64_t width = std::max<int64_t>(0, integer_argument(interp, call, 0));
  return interp.text(padded(interp, *call.self.text, {static_cast<size_t>(width), text_at, fill}));
}

Value zero_fill(Interpreter& interp, const Call& call) {
  const bool sign = call.self.text->bytes().starts_with('-') || call.self.text->bytes().starts_with('+');
  const int64_t width = std::max<int64_t>(0, integer_argument(interp, call, 0));
  MarkedText out = call.self.text->part(0, sign ? 1 : 0);
  const auto rest = static_cast<size_t>(sign ? std::max<int64_t>(0, width - 1) : width);
  out.append(padded(interp, call.self.text->part(sign ? 1 : 0, call.self.text->size() - (sign ? 1 : 0)),
                    {rest, Ends::right, "0"}));
  return interp.text(std::move(out));
}

bool is_letter(int32_t code) {
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(int32_t code) {
  return utf8proc_category(code) == UTF8PROC_CATEGORY_ND;
}
// Superscripts, subscripts and digits in circles.
bool is_any_digit(int32_t code) {
  const auto in = [code](int32_t first, int32_t last) { return code >= first && code <= last; };
  return is_decimal(code) || code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070 || in(0x2074, 0x2079) ||
         in(0x2080, 0x2089) || in(0x2460, 0x2468) || in(0x2474, 0x247C) || in(0x2488, 0x2490) || code == 0x24EA ||
         in(0x24F5, 0x24FD) || code == 0x24FF || in(0x2776, 0x277E) || in(0x2780, 0x2788) || in(0x278A, 0x2792);
}
bool is_numeral(int32_t code) {
  const auto category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}
bool is_letter_or_number(int32_t code) {
  return is_letter(code) || is_numeral(code);
}

template <bool (*is)(int32_t), bool of_empty = false>
Value all_are(Interpreter& interp, const Call& call) {
  interp.charge_text(call.self.text->size(), 16);
  const auto characters = python_characters(call.self.text->bytes());
  if (characters.empty()) return Value::boolean(of_empty);
  return Value::boolean(std::ranges::all_of(characters, [](std::string_view c) { return is(code_point(c)); }));
}

bool is_ascii(int32_t code) {
  return code < 0x80;
}

// Some character has a case, and all that have one are lower or upper.
template <std::string (*change)(std::string_view)>
Value has_case(Interpreter& interp, const Call& call) {
  const std::string& text = call.self.text->bytes();
  interp.charge_case_change(text);
  interp.charge_case_change(text);
  return Value::boolean(python_lower(text) != python_upper(text) && change(text) == text);
}

Value is_title(Interpreter& interp, const Call& call) {
  const std::string& text = call.self.text->bytes();
  interp.charge_case_change(text);
  interp.charge_case_change(text);
  return Value::boolean(python_lower(text) != python_upper(text) && python_title(text) == text);
}

constexpr std::array kTextMethods{
    Builtin{"strip", strip<Ends::both>, "chars"},
    Builtin{"lstrip", strip<Ends::left>, "chars"},
    Builtin{"rstrip", strip<Ends::right>, "chars"},
    Builtin{"split", split<Ends::left>, "sep maxsplit"},
    Builtin{"rsplit", split<Ends::right>, "sep maxsplit"},
    Builtin{"splitlines", split_lines, "keepends"},
    Builtin{"startswith", has_affix<false>, "prefix start end", 1},
    Builtin{"endswith", has_affix<true>, "suffix start end", 1},
    Builtin{"upper", method_case<python_upper>},
    Builtin{"lower", method_case<python_lower>},
    Builtin{"title", method_case<python_title>},
    Builtin{"capitalize", method_case<python_capitalize>},
    Builtin{"replace", method_replace, "old new count", 2},
    Builtin{"find", find<Ends::left, false>, "sub start end", 1},
    Builtin{"rfind", find<Ends::right, false>, "sub start end", 1},
    Builtin{"index", find<Ends::left, true>, "sub start end", 1},
    Builtin{"rindex", find<Ends::right, true>, "sub start end", 1},
    Builtin{"count", count_in_text, "sub start end", 1},
    Builtin{"join", method_join, "iterable", 1},
    Builtin{"partition", partition<Ends::left>, "sep", 1},
    Builtin{"rpartition", partition<Ends::right>, "sep", 1},
    Builtin{"removeprefix", remove_affix<false>, "prefix", 1},
    Builtin{"removesuffix", remove_affix<true>, "suffix", 1},
    Builtin{"ljust", pad<Ends::left>, "width fillchar", 1},
    Builtin{"rjust", pad<Ends::right>, "width fillchar", 1},
    Builtin{"center", pad<Ends::both>, "width fillchar", 1},
    Builtin{"zfill", zero_fill, "width", 1},
    Builtin{"isalpha", all_are<is_letter>},
    Builtin{"isdecimal", all_are<is_decimal>},
    Builtin{"isdigit", all_are<is_any_digit>},
    Builtin{"isnumeric", all_are<is_numeral>},
    Builtin{"isalnum", all_are<is_letter_or_number>},
    Builtin{"isspace", all_are<is_python_space>},
    Builtin{"isascii", all_are<is_ascii, true>},
    Builtin{"isprintable", all_are<is_printable, true>},
    Builtin{"islower", has_case<python_lower>},
    Builtin{"isupper", has_case<python_upper>},
    Builtin{"istitle", is_title},
    Builtin{"format", format_braces, "*"},
};

}  // namespace

const Builtin* find_text_method(std::string_view name) {
  const auto found = std::ranges::find(kTextMethods, name, &Builtin::name);
  return found == kTextMethods.end() ? nullptr : &*found;
}

// Python's \w: letters, numbers and the underscore.
int64_t count_words(std::string_view text) {
  int64_t words = 0;
  bool inside = false;
  for (const std::string_view c : python_characters(text)) {
    const bool part = c == "_" || is_letter_or_number(code_point(c));
    words += part && !inside ? 1 : 0;
    inside = part;
  }
  return words;
}

}  // namespace qkv::jinja

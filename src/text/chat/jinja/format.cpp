// "%s" % value and "{}".format(value), the subset that templates use.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/printable.h"
#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/methods.h"
#include "text/chat/jinja/text.h"
#include "text/unicode/characters.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {
namespace {

constexpr int kWidest = 1000;  // of a field

struct Field {
  std::string fill = " ";
  char align = 0;     // < > ^ or =: the fill stands between sign and digits
  char sign = '-';    // + or space: before positive numbers too
  char grouping = 0;  // , or _ between thousands
  bool alternate = false;
  int width = 0;
  int precision = -1;
  char type = 's';  // 0: not given, in {}
};

bool is_one_of(char c, std::string_view set) {
  return c != 0 && set.find(c) != set.npos;
}

int take_number(std::string_view& text) {
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return result.ec == std::errc() ? std::min(number, kWidest + 1) : 0;
}

char take_one_of(std::string_view& text, std::string_view set) {
  const char c = !text.empty() && is_one_of(text[0], set) ? text[0] : '\0';
  if (c != 0) text.remove_prefix(1);
  return c;
}

void check_width(Interpreter& interp, const Field& field) {
  if (field.width > kWidest || field.precision > kWidest) {
    interp.fail("a format is wider than " + std::to_string(kWidest), "make it narrower");
  }
}

// After the '%' of a pattern.
Field take_percent_field(Interpreter& interp, std::string_view& text) {
  Field field{.align = '>'};
  while (const char flag = take_one_of(text, "-0+ #")) {
    if (flag == '-') field.align = '<';
    if (flag == '0' && field.align != '<') field.align = '=';
    if (flag == '+' || (flag == ' ' && field.sign == '-')) field.sign = flag;
    field.alternate = field.alternate || flag == '#';
  }
  field.width = take_number(text);
  if (take_one_of(text, ".") != 0) field.precision = take_number(text);
  check_width(interp, field);
  if (text.empty()) interp.fail("a format ends after '%'", "write %% for a percent sign");
  field.type = text[0] == 'i' || text[0] == 'u' ? 'd' : text[0] == 'a' ? 'r' : text[0];
  text.remove_prefix(1);
  if (field.align == '=') {
    field.fill = "0";
    if (!is_one_of(field.type, "dxXofFeEgG"))
      field = {.fill = " ", .align = '>', .width = field.width, .precision = field.precision, .type = field.type};
  }
  return field;
}

// Python's format specification: [[fill]align][sign][#][0][width][grouping][.precision][type].
Field brace_field(Interpreter& interp, std::string_view spec) {
  Field field{.type = 0};
  const size_t first = spec.empty() ? 0 : bytes_of_characters(spec, 1);
  if (first < spec.size() && is_one_of(spec[first], "<>^=")) {
    field.fill = spec.substr(0, first);
    spec.remove_prefix(first);
  }
  field.align = take_one_of(spec, "<>^=");
  if (const char sign = take_one_of(spec, "+- ")) field.sign = sign;
  field.alternate = take_one_of(spec, "#") != 0;
  if (take_one_of(spec, "0") != 0 && field.align == 0) {
    field.align = '=';
    field.fill = "0";
  }
  field.width = take_number(spec);
  field.grouping = take_one_of(spec, ",_");
  if (take_one_of(spec, ".") != 0) field.precision = take_number(spec);
  field.type = take_one_of(spec, "sdbcoxXneEfFgG%");
  check_width(interp, field);
  if (!spec.empty()) interp.fail("format does not know " + printable(spec), "see Python's format specification");
  return field;
}

std::string float_digits(Interpreter& interp, const Field& field, double number) {
  if (std::isnan(number)) return is_one_of(field.type, "FEG") ? "NAN" : "nan";
  if (std::isinf(number)) return is_one_of(field.type, "FEG") ? "INF" : "inf";
  if (field.type == 0 && field.precision < 0) return number_text(std::fabs(number));
  const char type = static_cast<char>(field.type | 32);
  const auto form = field.type == '%' || type == 'f' ? std::chars_format::fixed
                    : type == 'e'                    ? std::chars_format::scientific
                                                     : std::chars_format::general;
  std::string digits(kWidest + 320, '\0');  // the largest double has 309 digits before its point
  interp.charge_text(digits.size(), 16);
  const double size = std::fabs(number) * (field.type == '%' ? 100 : 1);
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), size, form, field.precision < 0 ? 6 : field.precision)
          .ptr;
  digits.resize(static_cast<size_t>(end - digits.data()));
  if (field.type == 0 && digits.find_first_of(".e") == digits.npos) digits += ".0";
  if (field.type == '%') digits += '%';
  if (is_one_of(field.type, "EG"))
    std::ranges::transform(digits, digits.begin(), [](char c) { return c == 'e' ? 'E' : c; });
  return digits;
}

std::string integer_digits(const Field& field, uint64_t size) {
  switch (field.type) {
    case 'x':
      return fmt::format("{}{:x}", field.alternate ? "0x" : "", size);
    case 'X':
      return fmt::format("{}{:X}", field.alternate ? "0X" : "", size);
    case 'o':
      return fmt::format("{}{:o}", field.alternate ? "0o" : "", size);
    case 'b':
      return fmt::format("{}{:b}", field.alternate ? "0b" : "", size);
    default:
      return std::to_string(size);
  }
}

void group_thousands(std::string& digits, char by) {
  size_t end = 0;
  while (end < digits.size() && digits[end] >= '0' && digits[end] <= '9') ++end;
  for (size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, by);
}

std::string format_number(Interpreter& interp, const Field& field, const Value& value) {
  if (value.is(Kind::undefined)) interp.fail_undefined(value);
  if (!value.is_numeric()) interp.fail(std::string("a ") + name_of(value) + " where a format wants a number", "use %s");
  std::string digits;
  bool negative = false;
  if (is_one_of(field.type, "fFeEgG%") || (field.type == 0 && value.is(Kind::number))) {
    negative = std::signbit(value.as_number());
    digits = float_digits(interp, field, value.as_number());
  } else {
    if (value.is(Kind::number) && (field.type != 'd' || !(std::fabs(value.number) < 9.2e18))) {
      interp.fail("a float where a format wants an integer", "use %f, or |int first");
    }
    const int64_t number = value.is(Kind::number) ? static_cast<int64_t>(value.number) : value.as_integer();
    negative = number < 0;
    digits = integer_digits(field, negative ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number));
    if (std::cmp_less(digits.size(), field.precision)) {
      digits.insert(0, static_cast<size_t>(field.precision) - digits.size(), '0');
    }
  }
  if (field.grouping != 0) group_thousands(digits, field.grouping);
  const std::string sign = negative ? "-" : field.sign == '-' ? "" : std::string(1, field.sign);
  if (field.align == '=') {
    while (std::cmp_less(python_length(sign + digits), field.width)) digits.insert(0, field.fill);
  }
  return sign + digits;
}

MarkedText shown(Interpreter& interp, const Field& field, const Value& value) {
  MarkedText out;
  const bool as_text = is_one_of(field.type, "sr") || (field.type == 0 && !value.is_numeric());
  if (as_text) {
    out = field.type == 'r' ? interp.repr(value) : interp.str(value);
    if (field.precision >= 0) out = out.part(0, bytes_of_characters(out.bytes(), static_cast<size_t>(field.precision)));
  } else if (field.type == 'c') {
    const int64_t code = value.is_integral() ? value.as_integer() : -1;
    if (value.is(Kind::text) && python_length(value.text->bytes()) == 1) {
      out = *value.text;
    } else if (code >= 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF)) {
      out = utf8_of(static_cast<uint32_t>(code));
    } else {
      interp.fail("%c takes a character or its code", "use %s");
    }
  } else if (is_one_of(field.type, "dbxXofFeEgG%n") || field.type == 0) {
    out = format_number(interp, field, value);
  } else {
    interp.fail(std::string("% does not know the letter ") + printable({&field.type, 1}), "use s, r, d, x, f, e or g");
  }
  const auto width = static_cast<size_t>(field.width);
  if (field.align == '^') {  // unlike str.center, more on the right
    const size_t length = python_length(out.bytes());
    const size_t left = width > length ? (width - length) / 2 : 0;
    out = padded(interp, out, {.width = length + left, .text_at = Ends::right, .fill = field.fill});
  }
  const bool right = field.align == '>' || (field.align == 0 && !as_text);
  return padded(interp, out, {.width = width, .text_at = right ? Ends::right : Ends::left, .fill = field.fill});
}

}  // namespace

Value Interpreter::format(const Value& pattern, const Args& args) {
  MarkedText out;
  std::string_view text = pattern.text->bytes();
  size_t used = 0;
  const bool has_names = args.values.size() == 1 && args.values[0].is(Kind::dict);
  for (size_t place = text.find('%'); place != text.npos; place = text.find('%')) {
    out.append(*pattern.text, text.substr(0, place));
    text.remove_prefix(place + 1);
    if (text.starts_with('%')) {
      out.append(*pattern.text, text.substr(0, 1));
      text.remove_prefix(1);
      continue;
    }
    Value value;
    if (text.starts_with('(') && has_names && text.find(')') != text.npos) {
      const std::string name(text.substr(1, text.find(')') - 1));
      const Value* found = lookup(*args.values[0].dict, name);
      if (!found) fail("% finds no value named " + printable(name), "give it");
      value = *found;
      text.remove_prefix(name.size() + 2);
      used = 1;
    } else {
      if (used >= args.values.size()) fail("% has fewer values than places", "give one value for each");
      value = args.values[used++];
    }
    out.append(shown(*this, take_percent_field(*this, text), value));
    check_size(out.size());
    spend(1);
  }
  out.append(*pattern.text, text);
  const bool is_list = args.values.size() == 1 && args.values[0].is(Kind::list);
  if (used < args.values.size() && !has_names && !is_list)
    fail("% has more values than places", "give one value for each");
  return this->text(std::move(out));
}

Value format_braces(Interpreter& interp, const Call& call) {
  MarkedText out;
  const std::string& pattern = call.self.text->bytes();
  size_t automatic = 0;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    const bool doubled = (c == '{' || c == '}') && at + 1 < pattern.size() && pattern[at + 1] == c;
    if ((c != '{' && c != '}') || doubled) {
      out.append(*call.self.text, at, 1);
      at += doubled ? 1 : 0;
      continue;
    }
    const size_t end = pattern.find('}', at);
    if (c == '}' || end == pattern.npos) interp.fail("format finds a single brace", "write {{ and }} for braces");
    std::string_view name = std::string_view(pattern).substr(at + 1, end - at - 1);
    at = end;
    const size_t colon = std::min(name.find(':'), name.size());
    const std::string_view spec = name.substr(std::min(colon + 1, name.size()));
    Field field = brace_field(interp, spec);
    name = name.substr(0, colon);
    const bool as_repr = name.ends_with("!r"), as_str = name.ends_with("!s");
    if (as_repr || as_str) name.remove_suffix(2);
    const auto named = std::ranges::find(call.args.named, name, [](const auto& pair) { return pair.first; });
    size_t index = automatic;
    if (name.empty()) {
      ++automatic;
    } else if (named == call.args.named.end()) {
      index = static_cast<size_t>(take_number(name));
      if (!name.empty()) interp.fail("format takes only {}, {0} and {name} in strings", "use % to format numbers");
    }
    const bool by_name = named != call.args.named.end();
    if (!by_name && index >= call.args.values.size())
      interp.fail("format has fewer values than places", "give one for each");
    Value value = by_name ? named->second : call.args.values[index];
    if (as_repr || as_str) value = interp.text(as_repr ? interp.repr(value) : interp.str(value));
    if (!spec.empty() && !value.is(Kind::text) && !value.is_numeric()) {
      interp.fail(std::string("format of a ") + name_of(value) + " by " + printable(spec), "write {} or {!s}");
    }
    if (value.is(Kind::boolean) && field.width == 0 && field.type == 0) field.type = 's';
    out.append(shown(interp, field, value));
    interp.check_size(out.size());
    interp.spend(1);
  }
  return interp.text(std::move(out));
}

}  // namespace qkv::jinja

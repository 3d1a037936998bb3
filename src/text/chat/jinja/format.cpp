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
#include "text/unicode/python_text.h"

namespace qkv::jinja {
namespace {

constexpr int kWidest = 1000;  // of a field

struct Field {
  bool left = false, zero = false, plus = false, space = false;
  int width = 0;
  int precision = -1;
  char type = 's';
};

int take_number(std::string_view& text) {
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return result.ec == std::errc() ? std::min(number, kWidest + 1) : 0;
}

Field take_field(Interpreter& interp, std::string_view& text) {
  Field field;
  for (; !text.empty() && std::string_view("-0+ ").find(text[0]) != std::string_view::npos; text.remove_prefix(1)) {
    field.left = field.left || text[0] == '-';
    field.zero = field.zero || text[0] == '0';
    field.plus = field.plus || text[0] == '+';
    field.space = field.space || text[0] == ' ';
  }
  field.width = take_number(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    field.precision = take_number(text);
  }
  if (field.width > kWidest || field.precision > kWidest) {
    interp.fail("a format is wider than " + std::to_string(kWidest), "make it narrower");
  }
  if (text.empty()) interp.fail("a format ends after '%'", "write %% for a percent sign");
  field.type = text[0];
  text.remove_prefix(1);
  return field;
}

std::string format_number(Interpreter& interp, const Field& field, const Value& value) {
  if (value.is(Kind::undefined)) interp.fail_undefined(value);
  if (!value.is_numeric()) interp.fail(std::string("a ") + name_of(value) + " where % wants a number", "use %s");
  std::string digits;
  bool negative = false;
  if (std::string_view("feg").find(field.type) != std::string_view::npos) {
    const double number = value.as_number();
    negative = std::signbit(number);
    const int precision = field.precision < 0 ? 6 : field.precision;
    const auto form = field.type == 'f'   ? std::chars_format::fixed
                      : field.type == 'e' ? std::chars_format::scientific
                                          : std::chars_format::general;
    digits.resize(kWidest + 320);  // the largest double has 309 digits before its point
    interp.charge_text(digits.size(), 16);
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), std::fabs(number), form, precision).ptr;
    digits.resize(static_cast<size_t>(end - digits.data()));
  } else {
    if (value.is(Kind::number) && std::fabs(value.number) >= 9.2e18)
      interp.fail("a number does not fit in 64 bits", "use %f");
    const int64_t number = value.is(Kind::number) ? static_cast<int64_t>(value.number) : value.as_integer();
    negative = number < 0;
    const uint64_t size = negative ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    digits = field.type == 'x' ? fmt::format("{:x}", size) : std::to_string(size);
    if (std::cmp_less(digits.size(), field.precision)) {
      digits.insert(0, static_cast<size_t>(field.precision) - digits.size(), '0');
    }
  }
  std::string sign = negative ? "-" : field.plus ? "+" : field.space ? " " : "";
  if (field.zero && !field.left && std::cmp_less(sign.size() + digits.size(), field.width)) {
    digits.insert(0, static_cast<size_t>(field.width) - sign.size() - digits.size(), '0');
  }
  return sign + digits;
}

std::string shown(Interpreter& interp, const Field& field, const Value& value) {
  std::string out;
  if (field.type == 's' || field.type == 'r') {
    out = interp.str(value);
    if (field.type == 'r' && value.is(Kind::text)) out = repr_text(out);
    if (field.precision >= 0) out.resize(bytes_of_characters(out, static_cast<size_t>(field.precision)));
  } else if (std::string_view("dixfeg").find(field.type) != std::string_view::npos) {
    out = format_number(interp, field, value);
  } else {
    interp.fail(std::string("% does not know the letter ") + printable({&field.type, 1}), "use s, r, d, x, f, e or g");
  }
  const size_t length = python_length(out);
  if (std::cmp_less(length, field.width)) {
    out.insert(field.left ? out.size() : 0, static_cast<size_t>(field.width) - length, ' ');
  }
  return out;
}

}  // namespace

Value Interpreter::format(const Value& pattern, const Args& args) {
  std::string out;
  std::string_view text = *pattern.text;
  size_t used = 0;
  const bool has_names = args.values.size() == 1 && args.values[0].is(Kind::dict);
  for (size_t place = text.find('%'); place != text.npos; place = text.find('%')) {
    out += text.substr(0, place);
    text.remove_prefix(place + 1);
    if (text.starts_with('%')) {
      out += '%';
      text.remove_prefix(1);
      continue;
    }
    Value value;
    if (text.starts_with('(') && has_names && text.find(')') != text.npos) {
      const std::string name(text.substr(1, text.find(')') - 1));
      const Value* found = lookup(*args.values[0].dict, Value::text_of(&name));
      if (!found) fail("% finds no value named " + printable(name), "give it");
      value = *found;
      text.remove_prefix(name.size() + 2);
      used = 1;
    } else {
      if (used >= args.values.size()) fail("% has fewer values than places", "give one value for each");
      value = args.values[used++];
    }
    out += shown(*this, take_field(*this, text), value);
    check_size(out.size());
    spend(1);
  }
  out += text;
  const bool is_list = args.values.size() == 1 && args.values[0].is(Kind::list);
  if (used < args.values.size() && !has_names && !is_list)
    fail("% has more values than places", "give one value for each");
  return this->text(std::move(out));
}

Value format_braces(Interpreter& interp, const Call& call) {
  std::string out;
  const std::string& pattern = *call.self.text;
  size_t automatic = 0;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at + 1 < pattern.size() && pattern[at + 1] == c) {
      out += c;
      ++at;
      continue;
    }
    const size_t end = pattern.find('}', at);
    if (c == '}' || end == pattern.npos) interp.fail("format finds a single brace", "write {{ and }} for braces");
    std::string_view name = std::string_view(pattern).substr(at + 1, end - at - 1);
    at = end;
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
    out += interp.str(by_name ? named->second : call.args.values[index]);
    interp.check_size(out.size());
    interp.spend(1);
  }
  return interp.text(std::move(out));
}

}  // namespace qkv::jinja

// Filters of single values; filters of lists are in list_filters.cpp.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "base/printable.h"
#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/list_filters.h"
#include "text/chat/jinja/methods.h"
#include "text/chat/jinja/text.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {
namespace {

template <std::string (*change)(std::string_view)>
Value filter_case(Interpreter& interp, const Call& call) {
  return interp.text(case_changed(interp, interp.str(call.self), change));
}

// Unlike the method title(), a word starts only after white space and opening brackets.
std::string title(std::string_view text) {
  std::string out;
  bool starts = true;
  std::string_view word = text;
  const auto flush = [&](std::string_view end) {
    const std::string_view done = word.substr(0, static_cast<size_t>(end.data() - word.data()));
    if (!done.empty()) {
      const size_t first = bytes_of_characters(done, 1);
      out += python_upper(done.substr(0, first)) + python_lower(done.substr(first));
    }
    word = end;
  };
  for (std::string_view left = text; !left.empty();) {
    const std::string_view c = left.substr(0, bytes_of_characters(left, 1));
    const bool breaks = python_strip(c, {}, Ends::both).empty() || std::string_view("-({[<").find(c) != c.npos;
    if (breaks != starts) flush(left);
    starts = breaks;
    left.remove_prefix(c.size());
  }
  flush(text.substr(text.size()));
  return out;
}

Value titled(Interpreter& interp, const Call& call) {
  interp.spend(interp.str(call.self).size());
  return filter_case<title>(interp, call);
}

Value trim(Interpreter& interp, const Call& call) {
  const MarkedText text = interp.str(call.self);
  std::optional<std::string_view> characters;
  if (call.has[0] && !call.at[0].is(Kind::none)) characters = text_argument(interp, call, 0);
  return interp.text(stripped(interp, text, characters, Ends::both));
}

Value filter_replace(Interpreter& interp, const Call& call) {
  const int64_t most = call.has[2] && !call.at[2].is(Kind::none) ? integer_argument(interp, call, 2) : -1;
  const MarkedText from = interp.str(call.at[0]), to = interp.str(call.at[1]);
  return interp.text(replaced(interp, interp.str(call.self), {.from = from.bytes(), .to = to, .most = most}));
}

Value string(Interpreter& interp, const Call& call) {
  return call.self.is(Kind::text) ? call.self : interp.text(interp.str(call.self));
}

Value safe(Interpreter& interp, const Call& call) {
  Value value = string(interp, call);
  value.safe = true;
  return value;
}

Value escape(Interpreter& interp, const Call& call) {
  if (call.self.is(Kind::text) && call.self.safe) return call.self;
  Value value = interp.text(escaped(interp, interp.str(call.self)));
  value.safe = true;
  return value;
}

Value otherwise(Interpreter&, const Call& call) {
  const bool missing = call.self.is(Kind::undefined) || (truth(call.at[1]) && !truth(call.self));
  return missing ? call.at[0] : call.self;
}

Value default_filter(Interpreter& interp, const Call& call) {
  if (call.has[0]) return otherwise(interp, call);
  Call filled = call;
  filled.at[0] = interp.text("");
  return otherwise(interp, filled);
}

Value indent(Interpreter& interp, const Call& call) {
  if (!call.self.is(Kind::text))
    interp.fail(std::string("indent of a ") + name_of(call.self), "make it a string first: |string");
  MarkedText by = "    ";
  if (call.has[0]) {
    by = call.at[0].is(Kind::text) ? *call.at[0].text
                                   : repeated(interp, " ", std::max<int64_t>(0, integer_argument(interp, call, 0)));
  }
  return interp.text(indented(interp, *call.self.text, by, truth(call.at[1]), truth(call.at[2])));
}

Value tojson(Interpreter& interp, const Call& call) {
  JsonStyle style;
  style.ascii = truth(call.at[0]);
  style.sorted = truth(call.at[3]);
  if (call.has[1] && !call.at[1].is(Kind::none)) {
    style.pretty = true;
    style.item_separator = ",";
    style.indent = call.at[1].is(Kind::text)
                       ? *call.at[1].text
                       : repeated(interp, " ", std::max<int64_t>(0, integer_argument(interp, call, 1)));
  }
  if (call.has[2] && !call.at[2].is(Kind::none)) {
    const std::vector<Value> two = interp.items(call.at[2]);
    if (two.size() != 2 || !two[0].is(Kind::text) || !two[1].is(Kind::text)) {
      interp.fail("tojson's separators are not two strings", "give (', ', ': ')");
    }
    style.item_separator = *two[0].text;
    style.key_separator = *two[1].text;
  }
  return interp.text(interp.json(call.self, style));
}

// Python's float(string): surrounding spaces, a sign, single underscores between digits.
std::optional<std::string> bare_number(std::string_view text) {
  std::string bare(python_strip(text, {}, Ends::both));
  for (size_t at = 0; (at = bare.find('_', at)) != bare.npos;) {
    const auto digit = [&](size_t i) { return i < bare.size() && bare[i] >= '0' && bare[i] <= '9'; };
    if (at == 0 || !digit(at - 1) || !digit(at + 1)) return {};
    bare.erase(at, 1);
  }
  if (bare.starts_with('+') && !bare.starts_with("+-")) bare.erase(0, 1);
  return bare;
}

std::optional<double> number_in(Interpreter& interp, std::string_view text) {
  interp.charge_text(text.size());
  const auto bare = text.size() <= 4096 ? bare_number(text) : std::nullopt;
  double number = 0;
  if (!bare || bare->empty()) return {};
  const char* end = bare->data() + bare->size();
  const auto result = std::from_chars(bare->data(), end, number);
  if (result.ptr != end) return {};
  if (result.ec == std::errc::result_out_of_range) return bare->find("e-") != bare->npos ? 0 : HUGE_VAL;
  return number;
}

Value truncated(Interpreter& interp, double number) {
  if (!(std::fabs(number) < 9.2e18)) interp.fail("a number does not fit in 64 bits", "keep numbers below 9.2e18");
  return Value::integer_of(static_cast<int64_t>(number));
}

Value integer(Interpreter& interp, const Call& call) {
  const Value& v = call.self;
  if (v.is(Kind::undefined)) interp.fail_undefined(v);
  if (v.is_integral()) return Value::integer_of(v.as_integer());
  if (v.is(Kind::number)) return truncated(interp, v.number);
  const Value fallback = call.has[0] ? call.at[0] : Value::integer_of(0);
  if (!v.is(Kind::text)) return fallback;
  const auto base = static_cast<int>(std::clamp<int64_t>(call.has[1] ? integer_argument(interp, call, 1) : 10, 2, 36));
  std::optional<std::string> bare = v.text->size() <= 4096 ? bare_number(v.text->bytes()) : std::nullopt;
  if (bare) {
    const size_t sign = bare->starts_with('-') ? 1 : 0;
    const std::string_view prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "0z";
    if (std::string_view(*bare).substr(sign).starts_with(prefix)) bare->erase(sign, 2);
    int64_t number = 0;
    const char* end = bare->data() + bare->size();
    const auto result = std::from_chars(bare->data(), end, number, base);
    if (result.ptr == end && result.ec == std::errc()) return Value::integer_of(number);
  }
  const auto number = number_in(interp, v.text->bytes());
  return number && !std::isnan(*number) ? truncated(interp, *number) : fallback;
}

Value number(Interpreter& interp, const Call& call) {
  const Value& v = call.self;
  if (v.is(Kind::undefined)) interp.fail_undefined(v);
  if (v.is_numeric()) return Value::number_of(v.as_number());
  const auto read = v.is(Kind::text) ? number_in(interp, v.text->bytes()) : std::nullopt;
  if (read) return Value::number_of(*read);
  return call.has[0] ? call.at[0] : Value::number_of(0);
}

Value absolute(Interpreter& interp, const Call& call) {
  if (call.self.is(Kind::number)) return Value::number_of(std::fabs(call.self.number));
  if (call.self.is(Kind::undefined)) interp.fail_undefined(call.self);
  if (!call.self.is_integral()) interp.fail(std::string("abs of a ") + name_of(call.self), "give it a number");
  const int64_t number = call.self.as_integer();
  return number < 0 ? interp.arithmetic('-', Value::integer_of(0), Value::integer_of(number))
                    : Value::integer_of(number);
}

Value round(Interpreter& interp, const Call& call) {
  const std::string method = call.has[1] ? interp.str(call.at[1]).bytes() : "common";
  const int64_t precision = call.has[0] ? integer_argument(interp, call, 0) : 0;
  if (!call.self.is_numeric()) interp.fail(std::string("round of a ") + name_of(call.self), "give it a number");
  if (precision < 0 || precision > 100)
    interp.fail("round to " + std::to_string(precision) + " digits", "give 0 to 100");
  const double value = call.self.as_number();
  if (method == "common") {
    if (call.self.is_integral()) return Value::integer_of(call.self.as_integer());
    if (!std::isfinite(value)) return call.self;
    if (std::fabs(value) >= 1e17) return call.self;  // has no fractional digits
    interp.spend(static_cast<size_t>(precision));
    std::array<char, 128> digits;
    const auto end =
        std::to_chars(digits.begin(), digits.end(), value, std::chars_format::fixed, static_cast<int>(precision)).ptr;
    double rounded = 0;
    std::from_chars(digits.data(), end, rounded);
    return Value::number_of(rounded);
  }
  if (method != "ceil" && method != "floor") interp.fail("round by " + printable(method), "use common, ceil or floor");
  const double scale = std::pow(10, static_cast<double>(precision));
  return Value::number_of((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) / scale);
}

Value format(Interpreter& interp, const Call& call) {
  Args args = call.args;
  if (!args.named.empty()) {
    const Value names = interp.dict();
    for (const auto& [name, value] : args.named) {
      interp.insert(*names.dict, interp.text({std::string(name), args.name_mark}), value);
    }
    if (!args.values.empty()) interp.fail("format is given values with and without names", "use one or the other");
    args.values = {names};
  }
  return interp.format(interp.text(interp.str(call.self)), args);
}

Value force_escape(Interpreter& interp, const Call& call) {
  Value value = interp.text(escaped(interp, interp.str(call.self)));
  value.safe = true;
  return value;
}

Value center(Interpreter& interp, const Call& call) {
  const int64_t width = call.has[0] ? std::max<int64_t>(0, integer_argument(interp, call, 0)) : 80;
  return interp.text(padded(interp, interp.str(call.self), {static_cast<size_t>(width), Ends::both, " "}));
}

Value word_count(Interpreter& interp, const Call& call) {
  const MarkedText text = interp.str(call.self);
  interp.charge_text(text.size(), 16);
  return Value::integer_of(count_words(text.bytes()));
}

// At most `length` characters with the end, unless there are only `leeway` more.
Value truncate(Interpreter& interp, const Call& call) {
  if (!call.self.is(Kind::text)) interp.fail(std::string("truncate of a ") + name_of(call.self), "give it a string");
  const int64_t length = call.has[0] ? integer_argument(interp, call, 0) : 255;
  const int64_t leeway = call.has[3] && !call.at[3].is(Kind::none) ? integer_argument(interp, call, 3) : 5;
  const MarkedText end = call.has[2] ? interp.str(call.at[2]) : MarkedText("...");
  const auto end_length = static_cast<int64_t>(python_length(end.bytes()));
  if (length < end_length || leeway < 0) interp.fail("truncate to less than its end has", "give a greater length");
  const std::string_view text = call.self.text->bytes();
  interp.charge_text(text.size(), 8);
  if (static_cast<int64_t>(python_length(text)) <= length + leeway) return call.self;
  std::string_view kept = text.substr(0, bytes_of_characters(text, static_cast<size_t>(length - end_length)));
  if (!truth(call.at[1])) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  MarkedText out = call.self.text->part(kept);
  out.append(end);
  return interp.text(std::move(out));
}

constexpr std::array kValueFilters{
    Builtin{"upper", filter_case<python_upper>},
    Builtin{"lower", filter_case<python_lower>},
    Builtin{"capitalize", filter_case<python_capitalize>},
    Builtin{"title", titled},
    Builtin{"trim", trim, "chars"},
    Builtin{"replace", filter_replace, "old new count", 2},
    Builtin{"string", string},
    Builtin{"safe", safe},
    Builtin{"escape", escape},
    Builtin{"e", escape},
    Builtin{"forceescape", force_escape},
    Builtin{"center", center, "width"},
    Builtin{"wordcount", word_count},
    Builtin{"truncate", truncate, "length killwords end leeway"},
    Builtin{"default", default_filter, "default_value boolean"},
    Builtin{"d", default_filter, "default_value boolean"},
    Builtin{"indent", indent, "width first blank"},
    Builtin{"tojson", tojson, "ensure_ascii indent separators sort_keys"},
    Builtin{"int", integer, "default base"},
    Builtin{"float", number, "default"},
    Builtin{"abs", absolute},
    Builtin{"round", round, "precision method"},
    Builtin{"format", format, "*"},
};

}  // namespace

const Builtin* find_filter(std::string_view name) {
  const auto found = std::ranges::find(kValueFilters, name, &Builtin::name);
  return found == kValueFilters.end() ? find_list_filter(name) : &*found;
}

}  // namespace qkv::jinja

// What "is" can ask, and the functions templates can call.
#include <algorithm>
#include <array>
#include <ctime>
#include <string>

#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/machine.h"
#include "text/chat/jinja/methods.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {
namespace {

template <Kind... kinds>
Value is_kind(Machine&, const Call& call) {
  return Value::boolean(((call.self.kind == kinds) || ...));
}

template <bool wanted>
Value is_flag(Machine&, const Call& call) {
  return Value::boolean(call.self.is(Kind::boolean) && call.self.flag == wanted);
}

Value is_defined(Machine&, const Call& call) {
  return Value::boolean(!call.self.is(Kind::undefined));
}

Value is_sequence(Machine&, const Call& call) {
  const Value& v = call.self;
  // Undefined values count: Python finds a length and an index in them.
  return Value::boolean(v.is(Kind::text) || v.is(Kind::dict) || v.is(Kind::undefined) ||
                        (v.is(Kind::list) && v.list->is_sequence()));
}

template <int64_t remainder>
Value is_remainder(Machine& m, const Call& call) {
  const Value left = m.arithmetic('%', call.self, Value::integer_of(2));
  return Value::boolean(m.equal(left, Value::integer_of(remainder)));
}

Value is_divisible(Machine& m, const Call& call) {
  return Value::boolean(m.equal(m.arithmetic('%', call.self, call.at[0]), Value::integer_of(0)));
}

template <bool wanted>
Value is_equal(Machine& m, const Call& call) {
  return Value::boolean(m.equal(call.self, call.at[0]) == wanted);
}

template <char op>
Value is_ordered(Machine& m, const Call& call) {
  return Value::boolean(m.compare(op, call.self, call.at[0]));
}

Value is_same(Machine& m, const Call& call) {
  const Value &a = call.self, &b = call.at[0];
  if (a.kind != b.kind) return Value::boolean(false);
  if (a.is(Kind::list) || a.is(Kind::dict)) return Value::boolean(a.list == b.list);
  return Value::boolean(m.equal(a, b));
}

template <bool upper>
Value is_case(Machine& m, const Call& call) {
  const std::string text = m.str(call.self);
  m.scan_case(text);
  m.scan_case(text);
  const std::string lower = python_lower(text), raised = python_upper(text);
  return Value::boolean(lower != raised && text == (upper ? raised : lower));
}

constexpr std::array kTests{
    Builtin{"defined", is_defined},
    Builtin{"undefined", is_kind<Kind::undefined>},
    Builtin{"none", is_kind<Kind::none>},
    Builtin{"string", is_kind<Kind::text>},
    Builtin{"number", is_kind<Kind::boolean, Kind::integer, Kind::number>},
    Builtin{"integer", is_kind<Kind::integer>},
    Builtin{"float", is_kind<Kind::number>},
    Builtin{"boolean", is_kind<Kind::boolean>},
    Builtin{"true", is_flag<true>},
    Builtin{"false", is_flag<false>},
    Builtin{"mapping", is_kind<Kind::dict>},
    Builtin{"iterable", is_kind<Kind::text, Kind::list, Kind::dict, Kind::undefined, Kind::loop>},
    Builtin{"sequence", is_sequence},
    Builtin{"callable", is_kind<Kind::callable, Kind::undefined, Kind::loop>},
    Builtin{"even", is_remainder<0>},
    Builtin{"odd", is_remainder<1>},
    Builtin{"divisibleby", is_divisible, "num", 1},
    Builtin{"eq", is_equal<true>, "other", 1},
    Builtin{"equalto", is_equal<true>, "other", 1},
    Builtin{"==", is_equal<true>, "other", 1},
    Builtin{"ne", is_equal<false>, "other", 1},
    Builtin{"!=", is_equal<false>, "other", 1},
    Builtin{"lt", is_ordered<'<'>, "other", 1},
    Builtin{"lessthan", is_ordered<'<'>, "other", 1},
    Builtin{"<", is_ordered<'<'>, "other", 1},
    Builtin{"le", is_ordered<'l'>, "other", 1},
    Builtin{"<=", is_ordered<'l'>, "other", 1},
    Builtin{"gt", is_ordered<'>'>, "other", 1},
    Builtin{"greaterthan", is_ordered<'>'>, "other", 1},
    Builtin{">", is_ordered<'>'>, "other", 1},
    Builtin{"ge", is_ordered<'g'>, "other", 1},
    Builtin{">=", is_ordered<'g'>, "other", 1},
    Builtin{"in", is_ordered<'i'>, "seq", 1},
    Builtin{"sameas", is_same, "other", 1},
    Builtin{"lower", is_case<false>},
    Builtin{"upper", is_case<true>},
};

Value range(Machine& m, const Call& call) {
  int64_t start = 0, stop = integer_argument(m, call, 0), step = 1;
  if (call.has[1]) {
    start = stop;
    stop = integer_argument(m, call, 1);
  }
  if (call.has[2]) step = integer_argument(m, call, 2);
  if (step == 0) m.fail("range with step 0", "use another step");
  // Differences of 64-bit numbers need one bit more.
  const auto wide = [](int64_t a) { return static_cast<__int128>(a); };
  const __int128 span = step > 0 ? wide(stop) - start : wide(start) - stop;
  const __int128 stride = step > 0 ? wide(step) : -wide(step);
  const __int128 count = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (count > static_cast<__int128>(kLongestRange)) {
    m.fail("range has more than " + std::to_string(kLongestRange) + " numbers", "no template needs so many");
  }
  std::vector<Value> numbers;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) numbers.push_back(Value::integer_of(start + i * step));
  const Value made = m.list(std::move(numbers), List::Form::range);
  made.list->start = start;
  made.list->stop = stop;
  made.list->step = step;
  return made;
}

template <Kind kind>
Value make_dict(Machine& m, const Call& call) {
  const Value made = m.dict_of(kind);
  if (call.args.values.size() > 1) m.fail("more than one plain argument", "give names: name=value");
  for (const Value& from : call.args.values) {
    if (from.is(Kind::dict)) {
      for (const auto& [key, value] : from.dict->items) m.insert(*made.dict, key, value);
      continue;
    }
    for (const Value& pair : m.items(from)) {
      const std::vector<Value> parts = m.items(pair);
      if (parts.size() != 2) m.fail("a dict is made of pairs", "give names: name=value");
      m.insert(*made.dict, parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : call.args.named) m.insert(*made.dict, m.text(std::string(name)), value);
  return made;
}

Value raise_exception(Machine& m, const Call& call) {
  m.fail(m.str(call.at[0]), "the template refuses these messages: give them in the order and form it asks for");
}

Value strftime_now(Machine& m, const Call& call) {
  const std::string layout(text_argument(m, call, 0));
  std::tm time{};
  const std::time_t now = m.now();
  localtime_r(&now, &time);
  std::array<char, 1024> buffer;
  // A form that gives nothing cannot be told from one that does not fit, so one more letter is asked for.
  const size_t size = std::strftime(buffer.data(), buffer.size(), (layout + "x").c_str(), &time);
  if (size == 0 || layout.size() > 256) m.fail("strftime_now makes more than 1000 bytes", "use a shorter form");
  return m.text(std::string(buffer.data(), size - 1));
}

constexpr std::array kFunctions{
    Builtin{"range", range, "start stop step", 1},      Builtin{"dict", make_dict<Kind::dict>, "*"},
    Builtin{"namespace", make_dict<Kind::space>, "*"},  Builtin{"raise_exception", raise_exception, "message", 1},
    Builtin{"strftime_now", strftime_now, "format", 1},
};

}  // namespace

const Builtin* find_test(std::string_view name) {
  const auto found = std::ranges::find(kTests, name, &Builtin::name);
  return found == kTests.end() ? nullptr : &*found;
}

const Builtin* find_function(std::string_view name) {
  const auto found = std::ranges::find(kFunctions, name, &Builtin::name);
  return found == kFunctions.end() ? nullptr : &*found;
}

}  // namespace qkv::jinja

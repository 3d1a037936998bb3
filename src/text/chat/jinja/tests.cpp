// Tests ("x is name") and global functions.
#include <algorithm>
#include <array>
#include <ctime>
#include <string>

#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/methods.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {
namespace {

template <Kind... kinds>
Value is_kind(Interpreter&, const Call& call) {
  return Value::boolean(((call.self.kind == kinds) || ...));
}

template <bool wanted>
Value is_flag(Interpreter&, const Call& call) {
  return Value::boolean(call.self.is(Kind::boolean) && call.self.flag == wanted);
}

Value is_defined(Interpreter&, const Call& call) {
  return Value::boolean(!call.self.is(Kind::undefined));
}

Value is_sequence(Interpreter&, const Call& call) {
  const Value& v = call.self;
  // Undefined values count as sequences: Jinja's Undefined has __len__ and __getitem__.
  return Value::boolean(v.is(Kind::text) || v.is(Kind::dict) || v.is(Kind::undefined) ||
                        (v.is(Kind::list) && v.list->is_sequence()));
}

template <int64_t remainder>
Value is_remainder(Interpreter& interp, const Call& call) {
  const Value left = interp.arithmetic('%', call.self, Value::integer_of(2));
  return Value::boolean(interp.equal(left, Value::integer_of(remainder)));
}

Value is_divisible(Interpreter& interp, const Call& call) {
  return Value::boolean(interp.equal(interp.arithmetic('%', call.self, call.at[0]), Value::integer_of(0)));
}

template <bool wanted>
Value is_equal(Interpreter& interp, const Call& call) {
  return Value::boolean(interp.equal(call.self, call.at[0]) == wanted);
}

template <char op>
Value is_ordered(Interpreter& interp, const Call& call) {
  return Value::boolean(interp.compare(op, call.self, call.at[0]));
}

Value is_same(Interpreter& interp, const Call& call) {
  const Value &a = call.self, &b = call.at[0];
  if (a.kind != b.kind) return Value::boolean(false);
  if (a.is(Kind::list) || a.is(Kind::dict)) return Value::boolean(a.list == b.list);
  return Value::boolean(interp.equal(a, b));
}

template <bool upper>
Value is_case(Interpreter& interp, const Call& call) {
  const std::string text = interp.str(call.self).bytes();
  interp.charge_case_change(text);
  interp.charge_case_change(text);
  const std::string lower = python_lower(text), raised = python_upper(text);
  return Value::boolean(lower != raised && text == (upper ? raised : lower));
}

Value is_escaped(Interpreter&, const Call& call) {
  return Value::boolean(call.self.is(Kind::text) && call.self.safe);
}

template <const Builtin* (*find)(std::string_view)>
Value is_known(Interpreter&, const Call& call) {
  return Value::boolean(call.self.is(Kind::text) && find(call.self.text->bytes()) != nullptr);
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
    Builtin{"escaped", is_escaped},
    Builtin{"filter", is_known<find_filter>},
    Builtin{"test", is_known<find_test>},
    Builtin{"lower", is_case<false>},
    Builtin{"upper", is_case<true>},
};

Value range(Interpreter& interp, const Call& call) {
  int64_t start = 0, stop = integer_argument(interp, call, 0), step = 1;
  if (call.has[1]) {
    start = stop;
    stop = integer_argument(interp, call, 1);
  }
  if (call.has[2]) step = integer_argument(interp, call, 2);
  if (step == 0) interp.fail("range with step 0", "use another step");
  // The difference of two 64-bit integers needs 65 bits.
  const auto wide = [](int64_t a) { return static_cast<__int128>(a); };
  const __int128 span = step > 0 ? wide(stop) - start : wide(start) - stop;
  const __int128 stride = step > 0 ? wide(step) : -wide(step);
  const __int128 count = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (count > static_cast<__int128>(kLongestRange)) {
    interp.fail("range has more than " + std::to_string(kLongestRange) + " numbers", "no template needs so many");
  }
  std::vector<Value> numbers;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) numbers.push_back(Value::integer_of(start + i * step));
  const Value made = interp.list(std::move(numbers), List::Form::range);
  made.list->start = start;
  made.list->stop = stop;
  made.list->step = step;
  return made;
}

template <Kind kind>
Value make_dict(Interpreter& interp, const Call& call) {
  const Value made = interp.dict_of(kind);
  if (call.args.values.size() > 1) interp.fail("more than one plain argument", "give names: name=value");
  for (const Value& from : call.args.values) {
    if (from.is(Kind::dict)) {
      for (const auto& [key, value] : from.dict->items) interp.insert(*made.dict, key, value);
      continue;
    }
    for (const Value& pair : interp.items(from)) {
      const std::vector<Value> parts = interp.items(pair);
      if (parts.size() != 2) interp.fail("a dict is made of pairs", "give names: name=value");
      interp.insert(*made.dict, parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : call.args.named) {
    interp.insert(*made.dict, interp.text({std::string(name), call.args.name_mark}), value);
  }
  return made;
}

Value raise_exception(Interpreter& interp, const Call& call) {
  interp.fail(interp.str(call.at[0]).bytes(),
              "the template refuses these messages: give them in the order and form it asks for");
}

Value strftime_now(Interpreter& interp, const Call& call) {
  const std::string layout(text_argument(interp, call, 0));
  std::tm time{};
  const std::time_t now = interp.now();
  localtime_r(&now, &time);
  std::array<char, 1024> buffer;
  // strftime returns 0 both for an empty result and for overflow; the extra character tells them apart.
  const size_t size = std::strftime(buffer.data(), buffer.size(), (layout + "x").c_str(), &time);
  if (size == 0 || layout.size() > 256) interp.fail("strftime_now makes more than 1000 bytes", "use a shorter form");
  const bool own = !call.at[0].text->has_marks();
  return interp.text({std::string(buffer.data(), size - 1), own ? MarkedText::kTemplate : MarkedText::kMessage});
}

constexpr std::array kFunctions{
    Builtin{"range", range, "start stop step", 1},          Builtin{"dict", make_dict<Kind::dict>, "*"},
    Builtin{"namespace", make_dict<Kind::name_space>, "*"}, Builtin{"raise_exception", raise_exception, "message", 1},
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

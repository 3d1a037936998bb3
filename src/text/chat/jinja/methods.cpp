#include "text/chat/jinja/methods.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <string>

#include "base/printable.h"
#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/text.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {

std::string_view text_argument(Interpreter& interp, const Call& call, size_t at) {
  if (call.at[at].is(Kind::undefined) && call.has[at]) interp.fail_undefined(call.at[at]);
  if (!call.at[at].is(Kind::text)) {
    interp.fail(std::string("a ") + name_of(call.at[at]) + " where a string is wanted",
                "see the arguments of the call");
  }
  return *call.at[at].text;
}

int64_t integer_argument(Interpreter& interp, const Call& call, size_t at) {
  if (!call.at[at].is_integral()) {
    interp.fail(std::string("a ") + name_of(call.at[at]) + " where an integer is wanted",
                "see the arguments of the call");
  }
  return call.at[at].as_integer();
}

namespace {

template <Ends ends>
Value strip(Interpreter& interp, const Call& call) {
  std::optional<std::string_view> characters;
  if (call.has[0] && !call.at[0].is(Kind::none)) characters = text_argument(interp, call, 0);
  return interp.text(stripped(interp, *call.self.text, characters, ends));
}

template <Ends from>
Value split(Interpreter& interp, const Call& call) {
  PythonSplit options{.from = from};
  if (call.has[0] && !call.at[0].is(Kind::none)) options.separator = text_argument(interp, call, 0);
  if (options.separator && options.separator->empty())
    interp.fail("split by an empty string", "use |list for characters");
  const int64_t most = call.has[1] ? integer_argument(interp, call, 1) : -1;
  if (most >= 0) options.max_splits = static_cast<size_t>(most);
  const std::string_view whole = *call.self.text;
  // rsplit compares the separator at every position.
  const size_t shortest = options.separator ? options.separator->size() : 1;
  interp.charge_text(whole.size(), from == Ends::right ? 8 * shortest : 8);
  interp.spend(std::min(options.max_splits, whole.size() / shortest / 2));
  std::vector<Value> parts;
  for (const std::string_view part : python_split(whole, options)) parts.push_back(interp.text(std::string(part)));
  return interp.list(std::move(parts));
}

Value split_lines(Interpreter& interp, const Call& call) {
  interp.spend(call.self.text->size() / 2);
  std::vector<Value> lines;
  const LineEnds ends = truth(call.at[0]) ? LineEnds::keep : LineEnds::drop;
  for (const std::string_view line : python_lines(*call.self.text, ends))
    lines.push_back(interp.text(std::string(line)));
  return interp.list(std::move(lines));
}

template <bool at_end>
Value has_affix(Interpreter& interp, const Call& call) {
  const auto fits = [&](const Value& affix) {
    if (!affix.is(Kind::text))
      interp.fail(std::string("a ") + name_of(affix) + " where a string is wanted", "give a string");
    return at_end ? call.self.text->ends_with(*affix.text) : call.self.text->starts_with(*affix.text);
  };
  if (!call.at[0].is(Kind::list)) return Value::boolean(fits(call.at[0]));
  return Value::boolean(std::ranges::any_of(interp.items(call.at[0]), fits));
}

template <std::string (*change)(std::string_view)>
Value method_case(Interpreter& interp, const Call& call) {
  interp.charge_case_change(*call.self.text);
  return interp.text(change(*call.self.text));
}

Value method_replace(Interpreter& interp, const Call& call) {
  return interp.text(replaced(interp, *call.self.text, text_argument(interp, call, 0), text_argument(interp, call, 1),
                              call.has[2] ? integer_argument(interp, call, 2) : -1));
}

Value find(Interpreter& interp, const Call& call) {
  const size_t at = interp.find(*call.self.text, text_argument(interp, call, 0));
  if (at == std::string::npos) return Value::integer_of(-1);
  return Value::integer_of(static_cast<int64_t>(python_length(std::string_view(*call.self.text).substr(0, at))));
}

Value count(Interpreter& interp, const Call& call) {
  int64_t times = 0;
  if (call.self.is(Kind::list)) {
    for (const Value& value : interp.items(call.self)) times += interp.equal(value, call.at[0]) ? 1 : 0;
    return Value::integer_of(times);
  }
  const std::string_view what = text_argument(interp, call, 0);
  if (what.empty()) return Value::integer_of(static_cast<int64_t>(interp.length(call.self)) + 1);
  for (size_t at = 0; (at = interp.find(*call.self.text, what, at)) != std::string::npos; at += what.size()) ++times;
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

Value view(Interpreter& interp, const Call& call, const char* view_name,
           Value (*part)(Interpreter&, const std::pair<Value, Value>&)) {
  std::vector<Value> parts;
  for (const auto& item : call.self.dict->items) parts.push_back(part(interp, item));
  const Value made = interp.list(std::move(parts), List::Form::view);
  made.list->view_name = view_name;
  return made;
}

Value dict_items(Interpreter& interp, const Call& call) {
  return view(interp, call, "dict_items", [](Interpreter& machine, const std::pair<Value, Value>& item) {
    return machine.list({item.first, item.second}, List::Form::tuple);
  });
}

Value dict_keys(Interpreter& interp, const Call& call) {
  return view(interp, call, "dict_keys", [](Interpreter&, const std::pair<Value, Value>& item) { return item.first; });
}

Value dict_values(Interpreter& interp, const Call& call) {
  return view(interp, call, "dict_values",
              [](Interpreter&, const std::pair<Value, Value>& item) { return item.second; });
}

Value dict_get(Interpreter& interp, const Call& call) {
  const Value* found = interp.lookup(*call.self.dict, call.at[0]);
  if (found) return *found;
  return call.has[1] ? call.at[1] : Value::none();
}

Value list_index(Interpreter& interp, const Call& call) {
  const std::vector<Value> values = interp.items(call.self);
  for (size_t i = 0; i < values.size(); ++i) {
    if (interp.equal(values[i], call.at[0])) return Value::integer_of(static_cast<int64_t>(i));
  }
  interp.fail("index finds no such item", "test it with 'in' first");
}

Value loop_cycle(Interpreter& interp, const Call& call) {
  const auto& values = call.args.values;
  if (values.empty()) interp.fail("cycle has nothing to choose from", "give it values");
  return values[static_cast<size_t>(call.self.loop->index0) % values.size()];
}

constexpr std::array kTextMethods{
    Builtin{"strip", strip<Ends::both>, "chars"},
    Builtin{"lstrip", strip<Ends::left>, "chars"},
    Builtin{"rstrip", strip<Ends::right>, "chars"},
    Builtin{"split", split<Ends::left>, "sep maxsplit"},
    Builtin{"rsplit", split<Ends::right>, "sep maxsplit"},
    Builtin{"splitlines", split_lines, "keepends"},
    Builtin{"startswith", has_affix<false>, "prefix", 1},
    Builtin{"endswith", has_affix<true>, "suffix", 1},
    Builtin{"upper", method_case<python_upper>},
    Builtin{"lower", method_case<python_lower>},
    Builtin{"title", method_case<python_title>},
    Builtin{"capitalize", method_case<python_capitalize>},
    Builtin{"replace", method_replace, "old new count", 2},
    Builtin{"find", find, "sub", 1},
    Builtin{"count", count, "sub", 1},
    Builtin{"join", method_join, "iterable", 1},
    Builtin{"format", format_braces, "*"},
};

constexpr std::array kDictMethods{
    Builtin{"items", dict_items},
    Builtin{"keys", dict_keys},
    Builtin{"values", dict_values},
    Builtin{"get", dict_get, "key default", 1},
};

constexpr std::array kListMethods{
    Builtin{"index", list_index, "value", 1},
    Builtin{"count", count, "value", 1},
};

constexpr std::array kLoopMethods{Builtin{"cycle", loop_cycle, "*"}};

}  // namespace

const Builtin* find_method(const Value& self, std::string_view name) {
  const auto in = [&](const auto& table) -> const Builtin* {
    const auto found = std::ranges::find(table, name, &Builtin::name);
    return found == table.end() ? nullptr : &*found;
  };
  switch (self.kind) {
    case Kind::text:
      return in(kTextMethods);
    case Kind::dict:
      return in(kDictMethods);
    case Kind::list:
      return self.list->is_sequence() ? in(kListMethods) : nullptr;
    case Kind::loop:
      return in(kLoopMethods);
    default:
      return nullptr;
  }
}

bool is_mutating(const Value& self, std::string_view name) {
  constexpr std::array<std::string_view, 5> kDict{"clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::array<std::string_view, 8> kList{"append", "clear",  "extend",  "insert",
                                                  "pop",    "remove", "reverse", "sort"};
  if (self.is(Kind::dict)) return std::ranges::find(kDict, name) != kDict.end();
  if (self.is(Kind::list)) return std::ranges::find(kList, name) != kList.end();
  return false;
}

Value run(Interpreter& interp, const Builtin& builtin, const Value& self, const Args& args) {
  Call call{.self = self, .args = args, .at = {}, .has = {}};
  if (builtin.parameters == "*") return builtin.run(interp, call);
  const auto complain = [&](const char* problem) {
    interp.fail(printable(builtin.name) + " is given " + problem,
                builtin.parameters.empty() ? "it takes none" : "it takes: " + std::string(builtin.parameters));
  };
  size_t used = 0, place = 0;
  for (std::string_view left = builtin.parameters; !left.empty(); ++place) {
    const size_t size = std::min(left.find(' '), left.size());
    const std::string_view name = left.substr(0, size);
    left.remove_prefix(std::min(size + 1, left.size()));
    const auto named = std::ranges::find(args.named, name, [](const auto& pair) { return pair.first; });
    if (place < args.values.size()) {
      call.at[place] = args.values[place];
      call.has[place] = true;
    } else if (named != args.named.end()) {
      call.at[place] = named->second;
      call.has[place] = true;
      ++used;
    }
    if (!call.has[place] && place < builtin.required) complain("too few arguments");
  }
  if (args.values.size() > place || used < args.named.size()) complain("an argument it does not know");
  return builtin.run(interp, call);
}

}  // namespace qkv::jinja

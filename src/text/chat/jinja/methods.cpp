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
  return call.at[at].text->bytes();
}

int64_t integer_argument(Interpreter& interp, const Call& call, size_t at) {
  if (!call.at[at].is_integral()) {
    interp.fail(std::string("a ") + name_of(call.at[at]) + " where an integer is wanted",
                "see the arguments of the call");
  }
  return call.at[at].as_integer();
}

namespace {

Value count(Interpreter& interp, const Call& call) {
  int64_t times = 0;
  for (const Value& value : interp.items(call.self)) times += interp.equal(value, call.at[0]) ? 1 : 0;
  return Value::integer_of(times);
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

Value dict_copy(Interpreter& interp, const Call& call) {
  const Value made = interp.dict();
  interp.spend(call.self.dict->items.size());
  made.dict->items = call.self.dict->items;
  return made;
}

Value list_copy(Interpreter& interp, const Call& call) {
  if (call.self.list->form != List::Form::list) interp.fail("copy of what never changes", "use it as it is");
  return interp.list(call.self.list->items);
}

Value list_index(Interpreter& interp, const Call& call) {
  const std::vector<Value> values = interp.items(call.self);
  const std::array<Value, 3> bounds{call.has[1] ? call.at[1] : Value::none(), call.has[2] ? call.at[2] : Value::none(),
                                    Value::none()};
  const size_t window = interp.length(interp.slice(call.self, bounds));
  const auto size = static_cast<int64_t>(values.size());
  const int64_t given = call.has[1] ? integer_argument(interp, call, 1) : 0;
  const auto start = static_cast<size_t>(std::clamp<int64_t>(given < 0 ? given + size : given, 0, size));
  for (size_t i = start; i < start + window; ++i) {
    if (interp.equal(values[i], call.at[0])) return Value::integer_of(static_cast<int64_t>(i));
  }
  interp.fail("index finds no such item", "test it with 'in' first");
}

Value loop_cycle(Interpreter& interp, const Call& call) {
  const auto& values = call.args.values;
  if (values.empty()) interp.fail("cycle has nothing to choose from", "give it values");
  return values[static_cast<size_t>(call.self.loop->index0) % values.size()];
}

Value loop_changed(Interpreter& interp, const Call& call) {
  Loop& loop = *call.self.loop;
  const auto same = [&](const Value& a, const Value& b) { return interp.equal(a, b); };
  const bool changed = !loop.has_changed || !std::ranges::equal(loop.changed, call.args.values, same);
  loop.changed = call.args.values;
  loop.has_changed = true;
  return Value::boolean(changed);
}

constexpr std::array kDictMethods{
    Builtin{"items", dict_items},   Builtin{"keys", dict_keys},
    Builtin{"values", dict_values}, Builtin{"get", dict_get, "key default", 1},
    Builtin{"copy", dict_copy},
};

constexpr std::array kListMethods{
    Builtin{"index", list_index, "value start stop", 1},
    Builtin{"count", count, "value", 1},
    Builtin{"copy", list_copy},
};

constexpr std::array kLoopMethods{Builtin{"cycle", loop_cycle, "*"}, Builtin{"changed", loop_changed, "*"}};

}  // namespace

const Builtin* find_method(const Value& self, std::string_view name) {
  const auto in = [&](const auto& table) -> const Builtin* {
    const auto found = std::ranges::find(table, name, &Builtin::name);
    return found == table.end() ? nullptr : &*found;
  };
  switch (self.kind) {
    case Kind::text:
      return find_text_method(name);
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

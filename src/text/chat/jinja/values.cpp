// Operations on values: truth, length, items, attributes, slices.
#include <algorithm>
#include <array>
#include <string>

#include "base/printable.h"
#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/interpreter.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {

const char* name_of(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
      return "undefined value";
    case Kind::none:
      return "none";
    case Kind::boolean:
      return "boolean";
    case Kind::integer:
      return "integer";
    case Kind::number:
      return "float";
    case Kind::text:
      return "string";
    case Kind::list:
      return value.list->form == List::Form::iterator ? "generator" : "list";
    case Kind::dict:
      return "dict";
    case Kind::name_space:
      return "namespace";
    case Kind::callable:
      return value.callable->macro ? "macro" : "function";
    case Kind::loop:
      return "loop";
  }
  return "value";
}

bool truth(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.flag;
    case Kind::integer:
      return value.integer != 0;
    case Kind::number:
      return value.number != 0;
    case Kind::text:
      return !value.text->empty();
    case Kind::list:
      return value.list->form == List::Form::iterator || !value.list->items.empty();
    case Kind::dict:
      return !value.dict->items.empty();
    default:
      return true;
  }
}

size_t Interpreter::length(const Value& value) {
  if (value.is(Kind::text)) {
    charge_text(value.text->size(), 4);
    return python_length(value.text->bytes());
  }
  if (value.is(Kind::list) && value.list->form != List::Form::iterator) return value.list->items.size();
  if (value.is(Kind::dict)) return value.dict->items.size();
  if (value.is(Kind::loop)) return static_cast<size_t>(loop_length(*value.loop));
  if (value.is(Kind::undefined)) return 0;
  fail(std::string("a ") + name_of(value) + " has no length",
       value.is(Kind::list) ? "make it a list first: |list" : "only strings, lists and dicts have one");
}

std::vector<Value> Interpreter::items(const Value& value) {
  std::vector<Value> out;
  if (value.is(Kind::list)) {
    List& list = *value.list;
    spend(1 + list.remaining().size());
    out.assign(list.remaining().begin(), list.remaining().end());
    if (list.form == List::Form::iterator) list.next = list.items.size();
  } else if (value.is(Kind::text)) {
    spend(value.text->size());
    for (const std::string_view c : python_characters(value.text->bytes())) out.push_back(text(value.text->part(c)));
  } else if (value.is(Kind::dict)) {
    spend(1 + value.dict->items.size());
    for (const auto& [key, unused] : value.dict->items) out.push_back(key);
  } else if (!value.is(Kind::undefined)) {
    fail(std::string("a ") + name_of(value) + " cannot be looped over",
         "only strings, lists and dicts can; is it what the template expects?");
  }
  return out;
}

Value* Interpreter::lookup(Dict& dict, const Value& key) {
  spend(dict.items.size() / 8);
  for (auto& [name, value] : dict.items) {
    if (key.is(Kind::text) && name.is(Kind::text)) {
      if (key.text->bytes() == name.text->bytes()) return &value;
    } else if (equal(name, key)) {
      return &value;
    }
  }
  return nullptr;
}

Value* Interpreter::lookup(Dict& dict, std::string_view key) {
  spend(dict.items.size() / 8);
  for (auto& [name, value] : dict.items) {
    if (name.is(Kind::text) && name.text->bytes() == key) return &value;
  }
  return nullptr;
}

// Keys hold nothing that has keys, so looking one up never goes deeper than its tuples.
void Interpreter::check_key(const Value& key, int depth) {
  spend(1);
  check_value_depth(depth);
  const bool changes = key.is(Kind::dict) || (key.is(Kind::list) && key.list->form == List::Form::list);
  if (changes) fail(std::string("a ") + name_of(key) + " cannot be a key", "use a string");
  if (!key.is(Kind::list) || key.list->form != List::Form::tuple) return;
  for (const Value& part : key.list->items) check_key(part, depth + 1);
}

void Interpreter::insert(Dict& dict, const Value& key, const Value& value) {
  check_key(key);
  if (Value* there = lookup(dict, key)) {
    *there = value;
  } else {
    spend(1);
    dict.items.emplace_back(key, value);
  }
}

Value Interpreter::attribute(const Value& object, const std::string* name) {
  if (object.is(Kind::undefined)) fail_undefined(object);
  if (object.is(Kind::loop)) return loop_attribute(*object.loop, *name, name);
  if (const Builtin* method = find_method(object, *name)) return callable({.builtin = method, .self = object});
  if (is_mutating(object, *name)) {
    fail("the method " + printable(*name) + " would change a " + name_of(object), "templates may not change values");
  }
  if (object.is(Kind::dict) || object.is(Kind::name_space)) {
    const Value* found = lookup(*object.dict, *name);
    if (found) return *found;
  }
  if (object.is(Kind::list) && object.list->is_group && *name == "grouper") return object.list->items[0];
  if (object.is(Kind::list) && object.list->is_group && *name == "list") return object.list->items[1];
  if (object.is(Kind::callable) && object.callable->macro) return macro_attribute(*object.callable->macro, name);
  return Value::undefined(name);
}

Value Interpreter::macro_attribute(const Node& macro, const std::string* name) {
  if (*name == "name") return macro.flag ? Value::none() : text(*macro.text);
  if (*name == "catch_varargs") return Value::boolean(macro.more->takes_rest);
  if (*name == "catch_kwargs") return Value::boolean(macro.more->takes_named);
  if (*name == "caller") return Value::boolean(macro.more->takes_caller);
  if (*name != "arguments") return Value::undefined(name);
  std::vector<Value> names;
  for (const int parameter : macro.more->names) names.push_back(text(*program_.names[static_cast<size_t>(parameter)]));
  return list(std::move(names), List::Form::tuple);
}

Value Interpreter::loop_attribute(Loop& loop, std::string_view name, const std::string* asked) {
  if (name == "index") return Value::integer_of(loop.index0 + 1);
  if (name == "index0") return Value::integer_of(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(!loop_peek(loop));
  if (name == "length") return Value::integer_of(loop_length(loop));
  if (name == "revindex") return Value::integer_of(loop_length(loop) - loop.index0);
  if (name == "revindex0") return Value::integer_of(loop_length(loop) - loop.index0 - 1);
  if (name == "previtem") return loop.index0 == 0 ? Value::undefined(asked) : loop.before;
  if (name == "nextitem") return loop_peek(loop) ? loop.ready.front() : Value::undefined(asked);
  if (name == "depth") return Value::integer_of(loop.depth0 + 1);
  if (name == "depth0") return Value::integer_of(loop.depth0);
  Value self = Value::of(Kind::loop);
  self.loop = &loop;
  if (const Builtin* method = find_method(self, name)) return callable({.builtin = method, .self = self});
  return Value::undefined(asked);
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is(Kind::undefined)) fail_undefined(object);
  if (object.is(Kind::dict)) {
    if (const Value* found = lookup(*object.dict, key)) return *found;
  }
  if (key.is_integral()) {
    int64_t index = key.as_integer();
    const bool is_list = object.is(Kind::list) && object.list->is_sequence();
    if (!is_list && !object.is(Kind::text)) return Value::undefined();
    const auto size = static_cast<int64_t>(length(object));
    if (index < 0) index += size;
    if (index < 0 || index >= size) return Value::undefined();
    if (is_list) return object.list->items[static_cast<size_t>(index)];
    const std::string_view whole = object.text->bytes();
    const size_t before = bytes_of_characters(whole, static_cast<size_t>(index));
    charge_text(before, 8);
    const std::string_view from = whole.substr(before);
    return text(object.text->part(from.substr(0, bytes_of_characters(from, 1))));
  }
  if (!key.is(Kind::text)) return Value::undefined();
  if (key.text->bytes().starts_with("__")) {
    fail("attributes like " + printable(key.text->bytes()) + " are closed to templates", "no chat template needs them");
  }
  return object.is(Kind::dict) && !find_method(object, key.text->bytes()) ? Value::undefined(&key.text->bytes())
                                                                          : attribute(object, &key.text->bytes());
}

namespace {

struct Cut {
  int64_t from, to, step;
};

// Python's rules for slice bounds.
Cut cut_of(int64_t size, const std::array<const int64_t*, 3>& bounds) {
  Cut cut{.from = 0, .to = size, .step = bounds[2] ? *bounds[2] : 1};
  const int64_t low = cut.step > 0 ? 0 : -1, high = cut.step > 0 ? size : size - 1;
  const auto place = [&](const int64_t* bound, int64_t otherwise) {
    if (bound == nullptr) return otherwise;
    return std::clamp(*bound < 0 ? *bound + size : *bound, low, high);
  };
  cut.from = place(bounds[0], cut.step > 0 ? low : high);
  cut.to = place(bounds[1], cut.step > 0 ? high : low);
  return cut;
}

}  // namespace

Value Interpreter::slice(const Value& object, std::span<const Value> bounds) {
  if (object.is(Kind::undefined)) fail_undefined(object);
  const bool is_list = object.is(Kind::list) && object.list->is_sequence();
  if (!is_list && !object.is(Kind::text)) {
    fail(std::string("a slice of a ") + name_of(object), "only strings and lists can be cut");
  }
  std::array<int64_t, 3> numbers{};
  std::array<const int64_t*, 3> given{};
  for (size_t i = 0; i < 3; ++i) {
    if (bounds[i].is(Kind::none)) continue;
    if (bounds[i].is(Kind::undefined)) fail_undefined(bounds[i]);
    if (!bounds[i].is_integral()) fail(std::string("a slice at a ") + name_of(bounds[i]), "cut at integers");
    numbers[i] = bounds[i].as_integer();
    given[i] = &numbers[i];
  }
  if (given[2] && numbers[2] == 0) fail("a slice with step 0", "leave the step out, or use -1 to go backwards");
  // Steps longer than any list are equivalent; clamping prevents overflow below.
  constexpr int64_t kFar = int64_t{1} << 40;
  numbers[2] = std::clamp(numbers[2], -kFar, kFar);
  const auto size = static_cast<int64_t>(length(object));
  const Cut cut = cut_of(size, given);
  const auto goes_on = [&](int64_t at) { return cut.step > 0 ? at < cut.to : at > cut.to; };
  if (object.is(Kind::text)) {
    MarkedText out;
    spend(static_cast<size_t>(size));
    const auto characters = python_characters(object.text->bytes());
    for (int64_t at = cut.from; goes_on(at); at += cut.step)
      out.append(*object.text, characters[static_cast<size_t>(at)]);
    return text(std::move(out));
  }
  std::vector<Value> taken;
  const List& source = *object.list;
  for (int64_t at = cut.from; goes_on(at); at += cut.step) taken.push_back(source.items[static_cast<size_t>(at)]);
  const Value made = list(std::move(taken), source.form);
  if (source.form == List::Form::range) {
    const auto number = [&](int64_t at) {
      int64_t far = 0, sum = 0;
      const bool overflows =
          __builtin_mul_overflow(at, source.step, &far) || __builtin_add_overflow(source.start, far, &sum);
      if (overflows) fail("a number does not fit in 64 bits", "keep numbers below 9.2e18");
      return sum;
    };
    made.list->start = number(cut.from);
    made.list->stop = number(cut.to);
    if (__builtin_mul_overflow(cut.step, source.step, &made.list->step)) made.list->step = source.step;
  }
  return made;
}

}  // namespace qkv::jinja

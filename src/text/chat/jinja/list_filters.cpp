#include "text/chat/jinja/list_filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/printable.h"
#include "text/chat/jinja/machine.h"
#include "text/chat/jinja/methods.h"
#include "text/chat/jinja/text.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {
namespace {

// "a.b.0" of a value, as filters name attributes.
Value path_of(Machine& m, Value value, const Value& path) {
  if (!path.is(Kind::text)) return m.item(value, path);
  for (const std::string_view part : python_split(*path.text, {.separator = "."})) {
    int64_t index = 0;
    const auto result = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = !part.empty() && part[0] != '-' && result.ptr == part.data() + part.size();
    value = m.item(value, is_index ? Value::integer_of(index) : m.text(std::string(part)));
  }
  return value;
}

Value folded(Machine& m, const Value& value) {
  if (!value.is(Kind::text)) return value;
  m.scan_case(*value.text);
  return m.text(python_lower(*value.text));
}

// What values are compared by: themselves or an attribute, strings in small letters unless told otherwise.
Value key_of(Machine& m, const Value& value, const Value& path, bool case_sensitive) {
  const bool whole = path.is(Kind::undefined) || path.is(Kind::none);
  const Value key = whole ? value : path_of(m, value, path);
  return case_sensitive ? key : folded(m, key);
}

Value length(Machine& m, const Call& call) {
  return Value::integer_of(static_cast<int64_t>(m.length(call.self)));
}

Value first(Machine& m, const Call& call) {
  if (call.self.is(Kind::list) && call.self.list->form == List::Form::iterator) {
    List& list = *call.self.list;
    return list.next < list.items.size() ? list.items[list.next++] : Value::undefined();
  }
  const std::vector<Value> values = m.items(call.self);
  return values.empty() ? Value::undefined() : values.front();
}

Value last(Machine& m, const Call& call) {
  if (call.self.is(Kind::list) && call.self.list->form == List::Form::iterator) {
    m.fail("last of a generator", "make it a list first: |list|last");
  }
  const std::vector<Value> values = m.items(call.self);
  return values.empty() ? Value::undefined() : values.back();
}

Value list(Machine& m, const Call& call) {
  return m.list(m.items(call.self));
}

Value join(Machine& m, const Call& call) {
  std::vector<Value> values = m.items(call.self);
  if (call.has[1] && !call.at[1].is(Kind::none)) {
    for (Value& value : values) value = path_of(m, value, call.at[1]);
  }
  return m.text(joined(m, call.has[0] ? m.str(call.at[0]) : "", values));
}

Value items(Machine& m, const Call& call) {
  std::vector<Value> pairs;
  if (!call.self.is(Kind::undefined)) {
    if (!call.self.is(Kind::dict)) m.fail(std::string("items of a ") + name_of(call.self), "only a dict has them");
    for (const auto& [key, value] : call.self.dict->items) pairs.push_back(m.list({key, value}, List::Form::tuple));
  }
  return m.list(std::move(pairs), List::Form::iterator);
}

using Keyed = std::pair<std::vector<Value>, Value>;

std::vector<Value> sorted(Machine& m, std::vector<Keyed> keyed, bool backwards) {
  const auto before = [&](const Keyed& x, const Keyed& y) {
    for (size_t i = 0; i < x.first.size(); ++i) {
      if (!m.equal(x.first[i], y.first[i])) return m.less(x.first[i], y.first[i]);
    }
    return false;
  };
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const Keyed& x, const Keyed& y) { return backwards ? before(y, x) : before(x, y); });
  std::vector<Value> out;
  for (const Keyed& one : keyed) out.push_back(one.second);
  return out;
}

Value sort(Machine& m, const Call& call) {
  std::vector<Value> paths{call.at[2]};
  if (call.at[2].is(Kind::text)) {
    paths.clear();
    for (const std::string_view path : python_split(*call.at[2].text, {.separator = ","})) {
      paths.push_back(m.text(std::string(path)));
    }
  }
  std::vector<Keyed> keyed;
  for (const Value& value : m.items(call.self)) {
    keyed.push_back({{}, value});
    for (const Value& path : paths) keyed.back().first.push_back(key_of(m, value, path, truth(call.at[1])));
  }
  return m.list(sorted(m, std::move(keyed), truth(call.at[0])));
}

Value dictsort(Machine& m, const Call& call) {
  if (!call.self.is(Kind::dict)) m.fail(std::string("dictsort of a ") + name_of(call.self), "only a dict has keys");
  const std::string by = call.has[1] ? m.str(call.at[1]) : "key";
  if (by != "key" && by != "value") m.fail("dictsort by " + printable(by), "use 'key' or 'value'");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : call.self.dict->items) {
    const Value order = key_of(m, by == "key" ? key : value, Value::none(), truth(call.at[0]));
    keyed.push_back({{order}, m.list({key, value}, List::Form::tuple)});
  }
  return m.list(sorted(m, std::move(keyed), truth(call.at[2])));
}

Value unique(Machine& m, const Call& call) {
  std::vector<Value> seen, out;
  for (const Value& value : m.items(call.self)) {
    const Value key = key_of(m, value, call.at[1], truth(call.at[0]));
    if (std::ranges::any_of(seen, [&](const Value& old) { return m.equal(old, key); })) continue;
    seen.push_back(key);
    out.push_back(value);
  }
  return m.list(std::move(out), List::Form::iterator);
}

template <bool largest>
Value extreme(Machine& m, const Call& call) {
  Value best, best_key;
  bool any = false;
  for (const Value& value : m.items(call.self)) {
    const Value key = key_of(m, value, call.at[1], truth(call.at[0]));
    if (any && !(largest ? m.less(best_key, key) : m.less(key, best_key))) continue;
    best = value;
    best_key = key;
    any = true;
  }
  return best;
}

Value sum(Machine& m, const Call& call) {
  Value total = call.has[1] ? call.at[1] : Value::integer_of(0);
  const bool whole = !call.has[0] || call.at[0].is(Kind::none);
  for (const Value& value : m.items(call.self)) {
    if (total.is(Kind::text)) m.fail("sum of strings", "use |join");
    total = m.arithmetic('+', total, whole ? value : path_of(m, value, call.at[0]));
  }
  return total;
}

Value reverse(Machine& m, const Call& call) {
  std::vector<Value> values = m.items(call.self);
  std::ranges::reverse(values);
  if (call.self.is(Kind::text)) return m.text(joined(m, "", values));
  const bool lasts = call.self.is(Kind::list) && call.self.list->form == List::Form::iterator;
  return m.list(std::move(values), lasts ? List::Form::list : List::Form::iterator);
}

// What map, select and reject see: nothing in none, 0 and false, which cannot be looped over.
std::vector<Value> lazy_items(Machine& m, const Value& value) {
  return truth(value) ? m.items(value) : std::vector<Value>();
}

Value map(Machine& m, const Call& call) {
  std::vector<Value> values = lazy_items(m, call.self);
  const auto named = [&](std::string_view name) {
    const auto found = std::ranges::find(call.args.named, name, [](const auto& pair) { return pair.first; });
    return found == call.args.named.end() ? nullptr : &found->second;
  };
  const Value* path = named("attribute");
  if (call.args.values.empty() && path) {
    const Value* fallback = named("default");
    if (call.args.named.size() > (fallback ? 2U : 1U)) m.fail("map is given an argument it does not know", "drop it");
    for (Value& value : values) {
      value = path_of(m, value, *path);
      if (value.is(Kind::undefined) && fallback) value = *fallback;
    }
    return m.list(std::move(values), List::Form::iterator);
  }
  if (call.args.values.empty() || !call.args.values[0].is(Kind::text)) {
    m.fail("map does not say by what", "give the name of a filter, or attribute='name'");
  }
  const std::string& name = *call.args.values[0].text;
  const Builtin* filter = find_filter(name);
  if (!filter) m.fail("there is no filter " + printable(name), "is it misspelt?");
  Args args = call.args;
  args.values.erase(args.values.begin());
  const Machine::Nested nested(m);
  for (Value& value : values) {
    m.spend(1 + args.values.size());
    value = run(m, *filter, value, args);
  }
  return m.list(std::move(values), List::Form::iterator);
}

template <bool wanted, bool by_attribute>
Value select(Machine& m, const Call& call) {
  Args args = call.args;
  Value path;
  if constexpr (by_attribute) {
    if (args.values.empty()) m.fail("the name of an attribute is missing", "give it first");
    path = args.values[0];
    args.values.erase(args.values.begin());
  }
  const Builtin* test = nullptr;
  if (!args.values.empty()) {
    const std::string name = m.str(args.values[0]);
    test = find_test(name);
    if (!test) m.fail("there is no test " + printable(name), "is it misspelt?");
    args.values.erase(args.values.begin());
  }
  std::vector<Value> out;
  for (const Value& value : lazy_items(m, call.self)) {
    const Value tested = by_attribute ? path_of(m, value, path) : value;
    m.spend(1 + args.values.size());
    if (truth(test ? run(m, *test, tested, args) : tested) == wanted) out.push_back(value);
  }
  return m.list(std::move(out), List::Form::iterator);
}

constexpr std::array kFilters{
    Builtin{"length", length},
    Builtin{"count", length},
    Builtin{"first", first},
    Builtin{"last", last},
    Builtin{"list", list},
    Builtin{"join", join, "d attribute"},
    Builtin{"items", items},
    Builtin{"sort", sort, "reverse case_sensitive attribute"},
    Builtin{"dictsort", dictsort, "case_sensitive by reverse"},
    Builtin{"unique", unique, "case_sensitive attribute"},
    Builtin{"min", extreme<false>, "case_sensitive attribute"},
    Builtin{"max", extreme<true>, "case_sensitive attribute"},
    Builtin{"sum", sum, "attribute start"},
    Builtin{"reverse", reverse},
    Builtin{"map", map, "*"},
    Builtin{"select", select<true, false>, "*"},
    Builtin{"reject", select<false, false>, "*"},
    Builtin{"selectattr", select<true, true>, "*"},
    Builtin{"rejectattr", select<false, true>, "*"},
};

}  // namespace

const Builtin* find_list_filter(std::string_view name) {
  const auto found = std::ranges::find(kFilters, name, &Builtin::name);
  return found == kFilters.end() ? nullptr : &*found;
}

}  // namespace qkv::jinja

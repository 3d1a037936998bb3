#include "text/chat/jinja/list_filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "base/printable.h"
#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/methods.h"
#include "text/chat/jinja/text.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {
namespace {

// Resolves an attribute path "a.b.0" of a filter argument.
Value path_of(Interpreter& interp, Value value, const Value& path) {
  if (!path.is(Kind::text)) return interp.item(value, path);
  for (const std::string_view part : python_split(path.text->bytes(), {.separator = "."})) {
    int64_t index = 0;
    const auto result = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = !part.empty() && part[0] != '-' && result.ptr == part.data() + part.size();
    value = interp.item(value, is_index ? Value::integer_of(index) : interp.text(std::string(part)));
  }
  return value;
}

Value folded(Interpreter& interp, const Value& value) {
  if (!value.is(Kind::text)) return value;
  return interp.text(case_changed(interp, *value.text, python_lower));
}

// Sort key: the value or an attribute of it, strings in lower case unless case_sensitive.
Value key_of(Interpreter& interp, const Value& value, const Value& path, bool case_sensitive) {
  const bool whole = path.is(Kind::undefined) || path.is(Kind::none);
  const Value key = whole ? value : path_of(interp, value, path);
  return case_sensitive ? key : folded(interp, key);
}

Value length(Interpreter& interp, const Call& call) {
  return Value::integer_of(static_cast<int64_t>(interp.length(call.self)));
}

Value first(Interpreter& interp, const Call& call) {
  if (call.self.is(Kind::list) && call.self.list->form == List::Form::iterator) {
    List& list = *call.self.list;
    return list.next < list.items.size() ? list.items[list.next++] : Value::undefined();
  }
  const std::vector<Value> values = interp.items(call.self);
  return values.empty() ? Value::undefined() : values.front();
}

Value last(Interpreter& interp, const Call& call) {
  if (call.self.is(Kind::list) && call.self.list->form == List::Form::iterator) {
    interp.fail("last of a generator", "make it a list first: |list|last");
  }
  const std::vector<Value> values = interp.items(call.self);
  return values.empty() ? Value::undefined() : values.back();
}

Value list(Interpreter& interp, const Call& call) {
  return interp.list(interp.items(call.self));
}

Value filter_join(Interpreter& interp, const Call& call) {
  std::vector<Value> values = interp.items(call.self);
  if (call.has[1] && !call.at[1].is(Kind::none)) {
    for (Value& value : values) value = path_of(interp, value, call.at[1]);
  }
  return interp.text(joined(interp, call.has[0] ? interp.str(call.at[0]) : MarkedText(), values));
}

Value items(Interpreter& interp, const Call& call) {
  std::vector<Value> pairs;
  if (!call.self.is(Kind::undefined)) {
    if (!call.self.is(Kind::dict)) interp.fail(std::string("items of a ") + name_of(call.self), "only a dict has them");
    for (const auto& [key, value] : call.self.dict->items)
      pairs.push_back(interp.list({key, value}, List::Form::tuple));
  }
  return interp.list(std::move(pairs), List::Form::iterator);
}

using Keyed = std::pair<std::vector<Value>, Value>;

std::vector<Value> sorted(Interpreter& interp, std::vector<Keyed> keyed, bool backwards) {
  const auto before = [&](const Keyed& x, const Keyed& y) {
    for (size_t i = 0; i < x.first.size(); ++i) {
      if (!interp.equal(x.first[i], y.first[i])) return interp.less(x.first[i], y.first[i]);
    }
    return false;
  };
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const Keyed& x, const Keyed& y) { return backwards ? before(y, x) : before(x, y); });
  std::vector<Value> out;
  for (const Keyed& one : keyed) out.push_back(one.second);
  return out;
}

Value sort(Interpreter& interp, const Call& call) {
  std::vector<Value> paths{call.at[2]};
  if (call.at[2].is(Kind::text)) {
    paths.clear();
    for (const std::string_view path : python_split(call.at[2].text->bytes(), {.separator = ","})) {
      paths.push_back(interp.text(std::string(path)));
    }
  }
  std::vector<Keyed> keyed;
  for (const Value& value : interp.items(call.self)) {
    keyed.push_back({{}, value});
    for (const Value& path : paths) keyed.back().first.push_back(key_of(interp, value, path, truth(call.at[1])));
  }
  return interp.list(sorted(interp, std::move(keyed), truth(call.at[0])));
}

Value dictsort(Interpreter& interp, const Call& call) {
  if (!call.self.is(Kind::dict))
    interp.fail(std::string("dictsort of a ") + name_of(call.self), "only a dict has keys");
  const std::string by = call.has[1] ? interp.str(call.at[1]).bytes() : "key";
  if (by != "key" && by != "value") interp.fail("dictsort by " + printable(by), "use 'key' or 'value'");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : call.self.dict->items) {
    const Value order = key_of(interp, by == "key" ? key : value, Value::none(), truth(call.at[0]));
    keyed.push_back({{order}, interp.list({key, value}, List::Form::tuple)});
  }
  return interp.list(sorted(interp, std::move(keyed), truth(call.at[2])));
}

// Groups of items with equal keys, in the order of the keys: tuples of the key and its items.
Value group_by(Interpreter& interp, const Call& call) {
  const bool case_sensitive = truth(call.at[2]);
  const auto own_key = [&](const Value& value) {
    const Value key = path_of(interp, value, call.at[0]);
    return key.is(Kind::undefined) && call.has[1] && !call.at[1].is(Kind::none) ? call.at[1] : key;
  };
  std::vector<Keyed> keyed;
  for (const Value& value : interp.items(call.self)) {
    const Value key = own_key(value);
    keyed.push_back({{case_sensitive ? key : folded(interp, key)}, interp.list({key, value}, List::Form::tuple)});
  }
  std::vector<Value> groups;
  Value last_key;
  for (const Value& pair : sorted(interp, std::move(keyed), false)) {
    const Value key = pair.list->items[0], value = pair.list->items[1];
    const Value compared = case_sensitive ? key : folded(interp, key);
    if (groups.empty() || !interp.equal(compared, last_key)) {
      groups.push_back(interp.list({key, interp.list({})}, List::Form::tuple));
      groups.back().list->is_group = true;
      last_key = compared;
    }
    groups.back().list->items[1].list->items.push_back(value);
  }
  return interp.list(std::move(groups));
}

// Lists of `linecount` items; the last is filled up.
Value batch(Interpreter& interp, const Call& call) {
  const int64_t count = integer_argument(interp, call, 0);
  std::vector<Value> rows, row;
  const auto finish = [&] { rows.push_back(interp.list(std::exchange(row, {}))); };
  for (const Value& value : interp.items(call.self)) {
    if (static_cast<int64_t>(row.size()) == count) finish();
    row.push_back(value);
  }
  if (!row.empty()) {
    const bool fills = call.has[1] && !call.at[1].is(Kind::none) && static_cast<int64_t>(row.size()) < count;
    if (fills) interp.spend(static_cast<size_t>(count));
    while (fills && static_cast<int64_t>(row.size()) < count) row.push_back(call.at[1]);
    finish();
  }
  return interp.list(std::move(rows), List::Form::iterator);
}

// `slices` lists of nearly equal length.
Value slices(Interpreter& interp, const Call& call) {
  const std::vector<Value> values = interp.items(call.self);
  const int64_t count = integer_argument(interp, call, 0);
  if (count < 1) interp.fail("slice into " + std::to_string(count) + " lists", "give 1 or more");
  interp.spend(static_cast<size_t>(count));
  const auto number = static_cast<size_t>(count);
  const size_t each = values.size() / number, longer = values.size() % number;
  std::vector<Value> out;
  for (size_t i = 0, at = 0; i < number; ++i) {
    const size_t length = each + (i < longer ? 1 : 0);
    std::vector<Value> part(values.begin() + static_cast<std::ptrdiff_t>(at),
                            values.begin() + static_cast<std::ptrdiff_t>(at + length));
    at += length;
    if (call.has[1] && !call.at[1].is(Kind::none) && i >= longer) part.push_back(call.at[1]);
    out.push_back(interp.list(std::move(part)));
  }
  return interp.list(std::move(out), List::Form::iterator);
}

Value unique(Interpreter& interp, const Call& call) {
  std::vector<Value> seen, out;
  for (const Value& value : interp.items(call.self)) {
    const Value key = key_of(interp, value, call.at[1], truth(call.at[0]));
    if (std::ranges::any_of(seen, [&](const Value& old) { return interp.equal(old, key); })) continue;
    seen.push_back(key);
    out.push_back(value);
  }
  return interp.list(std::move(out), List::Form::iterator);
}

template <bool largest>
Value extreme(Interpreter& interp, const Call& call) {
  Value best, best_key;
  bool any = false;
  for (const Value& value : interp.items(call.self)) {
    const Value key = key_of(interp, value, call.at[1], truth(call.at[0]));
    if (any && !(largest ? interp.less(best_key, key) : interp.less(key, best_key))) continue;
    best = value;
    best_key = key;
    any = true;
  }
  return best;
}

Value sum(Interpreter& interp, const Call& call) {
  Value total = call.has[1] ? call.at[1] : Value::integer_of(0);
  const bool whole = !call.has[0] || call.at[0].is(Kind::none);
  for (const Value& value : interp.items(call.self)) {
    if (total.is(Kind::text)) interp.fail("sum of strings", "use |join");
    total = interp.arithmetic('+', total, whole ? value : path_of(interp, value, call.at[0]));
  }
  return total;
}

Value reverse(Interpreter& interp, const Call& call) {
  std::vector<Value> values = interp.items(call.self);
  std::ranges::reverse(values);
  if (call.self.is(Kind::text)) return interp.text(joined(interp, MarkedText(), values));
  const bool lasts = call.self.is(Kind::list) && call.self.list->form == List::Form::iterator;
  return interp.list(std::move(values), lasts ? List::Form::list : List::Form::iterator);
}

// Items for map, select and reject: empty for none, 0 and false, which are not iterable.
std::vector<Value> lazy_items(Interpreter& interp, const Value& value) {
  return truth(value) ? interp.items(value) : std::vector<Value>();
}

Value map(Interpreter& interp, const Call& call) {
  std::vector<Value> values = lazy_items(interp, call.self);
  const auto named = [&](std::string_view name) {
    const auto found = std::ranges::find(call.args.named, name, [](const auto& pair) { return pair.first; });
    return found == call.args.named.end() ? nullptr : &found->second;
  };
  const Value* path = named("attribute");
  if (call.args.values.empty() && path) {
    const Value* fallback = named("default");
    if (call.args.named.size() > (fallback ? 2U : 1U))
      interp.fail("map is given an argument it does not know", "drop it");
    for (Value& value : values) {
      value = path_of(interp, value, *path);
      if (value.is(Kind::undefined) && fallback) value = *fallback;
    }
    return interp.list(std::move(values), List::Form::iterator);
  }
  if (call.args.values.empty() || !call.args.values[0].is(Kind::text)) {
    interp.fail("map does not say by what", "give the name of a filter, or attribute='name'");
  }
  const std::string& name = call.args.values[0].text->bytes();
  const Builtin* filter = find_filter(name);
  if (!filter) interp.fail("there is no filter " + printable(name), "is it misspelt?");
  Args args = call.args;
  args.values.erase(args.values.begin());
  const Interpreter::Nested nested(interp);
  for (Value& value : values) {
    interp.spend(1 + args.values.size());
    value = run(interp, *filter, value, args);
  }
  return interp.list(std::move(values), List::Form::iterator);
}

template <bool wanted, bool by_attribute>
Value select(Interpreter& interp, const Call& call) {
  Args args = call.args;
  Value path;
  if constexpr (by_attribute) {
    if (args.values.empty()) interp.fail("the name of an attribute is missing", "give it first");
    path = args.values[0];
    args.values.erase(args.values.begin());
  }
  const Builtin* test = nullptr;
  if (!args.values.empty()) {
    const std::string name = interp.str(args.values[0]).bytes();
    test = find_test(name);
    if (!test) interp.fail("there is no test " + printable(name), "is it misspelt?");
    args.values.erase(args.values.begin());
  }
  std::vector<Value> out;
  for (const Value& value : lazy_items(interp, call.self)) {
    const Value tested = by_attribute ? path_of(interp, value, path) : value;
    interp.spend(1 + args.values.size());
    if (truth(test ? run(interp, *test, tested, args) : tested) == wanted) out.push_back(value);
  }
  return interp.list(std::move(out), List::Form::iterator);
}

constexpr std::array kListFilters{
    Builtin{"length", length},
    Builtin{"count", length},
    Builtin{"first", first},
    Builtin{"last", last},
    Builtin{"list", list},
    Builtin{"join", filter_join, "d attribute"},
    Builtin{"items", items},
    Builtin{"sort", sort, "reverse case_sensitive attribute"},
    Builtin{"dictsort", dictsort, "case_sensitive by reverse"},
    Builtin{"groupby", group_by, "attribute default case_sensitive", 1},
    Builtin{"batch", batch, "linecount fill_with", 1},
    Builtin{"slice", slices, "slices fill_with", 1},
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
  const auto found = std::ranges::find(kListFilters, name, &Builtin::name);
  return found == kListFilters.end() ? nullptr : &*found;
}

}  // namespace qkv::jinja

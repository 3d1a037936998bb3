// The values a chat template works with: Python's, as far as templates need them, and nothing of the host. Values are
// small and copied freely; what they point to belongs to the Program (constants) or to the Machine that renders, and
// goes when it goes, so that values may hold each other in circles.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv::jinja {

struct Value;
struct List;
struct Dict;
struct Loop;
struct Callable;

enum class Kind : uint8_t { undefined, none, boolean, integer, number, text, list, dict, space, callable, loop };

struct Value {
  Kind kind = Kind::undefined;
  bool safe = false;  // of text: `safe` or `escape` made it, and + escapes what joins it
  union {
    const std::string* text = nullptr;  // of an undefined value: the name that was looked for, or null
    bool flag;
    int64_t integer;
    double number;
    List* list;
    Dict* dict;  // of a dict or a namespace
    Loop* loop;
    const Callable* callable;
  };

  static Value none() { return of(Kind::none); }
  static Value of(Kind kind) {
    Value v;
    v.kind = kind;
    return v;
  }
  static Value undefined(const std::string* name = nullptr) {
    Value v;
    v.text = name;
    return v;
  }
  static Value boolean(bool flag) {
    Value v = of(Kind::boolean);
    v.flag = flag;
    return v;
  }
  static Value integer_of(int64_t integer) {
    Value v = of(Kind::integer);
    v.integer = integer;
    return v;
  }
  static Value number_of(double number) {
    Value v = of(Kind::number);
    v.number = number;
    return v;
  }
  static Value text_of(const std::string* text) {
    Value v = of(Kind::text);
    v.text = text;
    return v;
  }

  bool is(Kind k) const { return kind == k; }
  bool is_integral() const { return kind == Kind::integer || kind == Kind::boolean; }
  bool is_numeric() const { return is_integral() || kind == Kind::number; }
  int64_t as_integer() const { return kind == Kind::boolean ? int64_t{flag} : integer; }
  double as_number() const { return kind == Kind::number ? number : static_cast<double>(as_integer()); }
};

// Python's kinds of sequences differ in how they print, whether they have a length, and whether they last.
struct List {
  enum class Form : uint8_t { list, tuple, range, view, iterator };
  std::vector<Value> items;
  Form form = Form::list;
  const char* shown = "";                 // a view: dict_keys, dict_values, dict_items
  size_t next = 0;                        // an iterator: what was taken already
  int64_t start = 0, stop = 0, step = 1;  // a range

  std::span<const Value> left() const { return std::span(items).subspan(next); }
  bool is_sequence() const { return form <= Form::range; }
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in the order of their making
};

// What a call is given.
struct Args {
  std::vector<Value> values;
  std::vector<std::pair<std::string_view, Value>> named;
};

const char* name_of(const Value& value);  // "string", "list", ... for error texts
bool truth(const Value& value);

}  // namespace qkv::jinja

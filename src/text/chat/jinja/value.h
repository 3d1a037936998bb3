// Values of chat templates: the Python types that templates need, without access to the host. Values are small and
// copied by value. Their data is owned by the Program (constants) or the Interpreter and freed with it, so that cyclic
// references are harmless.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/marked_text.h"

namespace qkv::jinja {

struct Value;
struct List;
struct Dict;
struct Loop;
struct Callable;

enum class Kind : uint8_t { undefined, none, boolean, integer, number, text, list, dict, name_space, callable, loop };

struct Value {
  Kind kind = Kind::undefined;
  bool safe = false;  // of text: result of `safe` or `escape`; + escapes the other operand
  union {
    const MarkedText* text = nullptr;
    const std::string* name;  // of an undefined value; may be null
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
    v.name = name;
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
  static Value text_of(const MarkedText* text) {
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

// Python's sequence types differ in how they print, whether they have a length, and whether they are consumed.
struct List {
  enum class Form : uint8_t { list, tuple, range, view, iterator };
  std::vector<Value> items;
  Form form = Form::list;
  const char* view_name = "";             // a view: dict_keys, dict_values, dict_items
  bool is_group = false;                  // a tuple of groupby: its items are called grouper and list
  size_t next = 0;                        // an iterator: number of consumed items
  int64_t start = 0, stop = 0, step = 1;  // a range

  std::span<const Value> remaining() const { return std::span(items).subspan(next); }
  bool is_sequence() const { return form <= Form::range; }
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in insertion order
};

// Arguments of a call.
struct Args {
  std::vector<Value> values;
  std::vector<std::pair<std::string_view, Value>> named;
  uint8_t name_mark = MarkedText::kTemplate;  // of the names: **dict may have a message's
};

const char* name_of(const Value& value);  // "string", "list", ... for error messages
bool truth(const Value& value);

}  // namespace qkv::jinja

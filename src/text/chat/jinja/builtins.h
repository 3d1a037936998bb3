// Lookup of built-in filters, tests, methods and functions by name.
#pragma once

#include <array>
#include <string_view>

#include "text/chat/jinja/value.h"

namespace qkv::jinja {

class Interpreter;

struct Call {
  Value self;               // the filtered or tested value, or the object of a method
  const Args& args;         // as written in the call
  std::array<Value, 5> at;  // by parameter
  std::array<bool, 5> has;
};

struct Builtin {
  std::string_view name;
  Value (*run)(Interpreter& interp, const Call& call);
  std::string_view parameters = "";  // names separated by spaces; "*": any arguments
  size_t required = 0;               // number of parameters without a default
};

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_function(std::string_view name);
const Builtin* find_method(const Value& self, std::string_view name);
// True for Python's mutating methods of lists and dicts, which templates may not call.
bool is_mutating(const Value& self, std::string_view name);

Value run(Interpreter& interp, const Builtin& builtin, const Value& self, const Args& args);

}  // namespace qkv::jinja

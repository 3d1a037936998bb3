// Filters, tests, methods and functions: tables from names to what runs.
#pragma once

#include <array>
#include <string_view>

#include "text/chat/jinja/value.h"

namespace qkv::jinja {

class Machine;

struct Call {
  Value self;               // what is filtered or tested, or whose method is called
  const Args& args;         // as given
  std::array<Value, 5> at;  // by parameter
  std::array<bool, 5> has;
};

struct Builtin {
  std::string_view name;
  Value (*run)(Machine& m, const Call& call);
  std::string_view parameters = "";  // names with spaces between; "*" takes whatever comes
  size_t required = 0;               // how many of them must be given
};

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_function(std::string_view name);
const Builtin* find_method(const Value& self, std::string_view name);
// True for methods of Python's lists and dicts that would change them: templates may not.
bool is_mutating(const Value& self, std::string_view name);

Value run(Machine& m, const Builtin& builtin, const Value& self, const Args& args);

}  // namespace qkv::jinja

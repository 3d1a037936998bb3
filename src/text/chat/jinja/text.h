// Values as text: Python's str() and repr(), JSON, and string helpers that charge fuel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/chat/jinja/value.h"
#include "text/unicode/python_text.h"

namespace qkv::jinja {

class Interpreter;

// json.dumps' settings.
struct JsonStyle {
  bool ascii = false;   // characters beyond ASCII as \uXXXX
  bool pretty = false;  // one item per line
  bool sorted = false;  // keys in order
  std::string indent;   // per level, if pretty
  std::string item_separator = ", ", key_separator = ": ";
};

std::string number_text(double number);                           // as Python prints a float
std::string repr_text(std::string_view text);                     // as repr() prints a string
std::string escaped(Interpreter& interp, std::string_view text);  // for HTML
std::string stripped(Interpreter& interp, std::string_view text, std::optional<std::string_view> characters, Ends ends);
std::string repeated(Interpreter& interp, std::string_view text, int64_t times);
std::string replaced(Interpreter& interp, std::string_view text, std::string_view from, std::string_view to,
                     int64_t most);
std::string joined(Interpreter& interp, std::string_view between, const std::vector<Value>& values);  // their str()
std::string indented(Interpreter& interp, std::string_view text, std::string_view by, bool first, bool blank);

}  // namespace qkv::jinja

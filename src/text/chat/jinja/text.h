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
  MarkedText indent;    // per level, if pretty
  MarkedText item_separator = ", ", key_separator = ": ";
};

bool is_printable(int32_t code);                                  // as str.isprintable
std::string number_text(double number);                           // as Python prints a float
MarkedText repr_text(const MarkedText& text);                     // as repr() prints a string
MarkedText escaped(Interpreter& interp, const MarkedText& text);  // for HTML
MarkedText stripped(Interpreter& interp, const MarkedText& text, std::optional<std::string_view> characters, Ends ends);
MarkedText repeated(Interpreter& interp, const MarkedText& text, int64_t times);
struct Replacement {
  std::string_view from;
  const MarkedText& to;
  int64_t most = -1;  // -1: all
};
MarkedText replaced(Interpreter& interp, const MarkedText& text, const Replacement& what);
MarkedText joined(Interpreter& interp, const MarkedText& between, const std::vector<Value>& values);  // their str()
MarkedText indented(Interpreter& interp, const MarkedText& text, const MarkedText& by, bool first, bool blank);
// The change may look at the text before a character, but not far behind it: python_upper, python_lower, ...
MarkedText case_changed(Interpreter& interp, const MarkedText& text, std::string (*change)(std::string_view));
// Spaces, or another character, on the sides up to a width in characters.
struct Padded {
  size_t width = 0;
  Ends text_at = Ends::left;  // Ends::both: in the middle
  MarkedText fill = " ";
};
MarkedText padded(Interpreter& interp, const MarkedText& text, const Padded& how);

}  // namespace qkv::jinja

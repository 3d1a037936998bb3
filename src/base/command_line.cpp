#include "base/command_line.h"

#include <algorithm>

namespace qkv {
namespace {

bool is_plain(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
  return letter || digit || std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

void CommandLine::take(std::string& to, std::string_view value) {
  to += shell_quoted(value);
  possible_ = possible_ && value.find('\0') == std::string_view::npos;
}

CommandLine& CommandLine::argument(std::string_view value) {
  arguments_ += ' ';
  take(arguments_, value);
  dashed_ = dashed_ || value.starts_with('-');
  return *this;
}

CommandLine& CommandLine::option(std::string_view name, std::string_view value) {
  options_ += ' ';
  options_ += name;
  options_ += value.starts_with('-') ? '=' : ' ';  // otherwise it would be read as an option of its own
  take(options_, value);
  return *this;
}

CommandLine& CommandLine::flag(std::string_view name) {
  options_ += ' ';
  options_ += name;
  return *this;
}

std::string CommandLine::text() const {
  if (!possible_) return "";
  return dashed_ ? command_ + options_ + " --" + arguments_ : command_ + arguments_ + options_;
}

}  // namespace qkv

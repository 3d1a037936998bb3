#include "base/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace qkv {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool may_move_cursor(int fd) {
  const std::string_view term = variable("TERM");
  return !term.empty() && term != "dumb" && ::isatty(fd) == 1;
}

bool may_colour(int fd) {
  return variable("NO_COLOR").empty() && may_move_cursor(fd);
}

}  // namespace qkv

// What a terminal gets to see.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace qkv::app {

inline bool may_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && ::isatty(STDOUT_FILENO) == 1;
}

// Whole characters of a text from elsewhere, without the control characters that could steer a terminal.
inline std::string without_controls(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool plain = byte >= 0x20 ? byte != 0x7f : byte == '\n' || byte == '\t';
    const bool upper = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (upper) ++i;
    if (plain && !upper) out += text[i];
  }
  return out;
}

}  // namespace qkv::app

#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace qkv {
namespace {

constexpr size_t kLongestShown = 120;

// Bytes of the UTF-8 character that starts the text; 0 if none does (Unicode 15, table 3-7).
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0), second = byte(1);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return 0;
  }
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool no_character = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || no_character ? 0 : length;
}

}  // namespace

std::string printable(std::string_view name) {
  std::string out = "'";
  for (size_t i = 0; i < name.size();) {
    const size_t length = character_length(name.substr(i));
    if (i + std::max<size_t>(length, 1) > kLongestShown) {
      out += "...";
      break;
    }
    const std::string_view character = name.substr(i, std::max<size_t>(length, 1));
    const auto last = static_cast<unsigned char>(character.back());
    const bool is_control = length == 1 && (last < 0x20 || last == 0x7F);
    const bool is_c1_control = length == 2 && character[0] == '\xC2' && last < 0xA0;
    if (length == 0) {
      out += fmt::format("\\x{:02x}", last);
    } else if (is_control || is_c1_control) {
      out += fmt::format("\\u{:04x}", last);
    } else {
      out += character;
    }
    i += character.size();
  }
  return out + "'";
}

}  // namespace qkv

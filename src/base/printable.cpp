#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace qkv {
namespace {

constexpr size_t kLongestName = 120;

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

bool steers(unsigned c) {
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  const bool separator = c == 0x2028 || c == 0x2029;
  const bool reorders = (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return control || separator || reorders;
}

// All that steers is below U+10000 and so has three bytes at most.
unsigned code_of(std::string_view character) {
  const auto low = [&](size_t i) { return static_cast<unsigned char>(character[i]) & 0x3Fu; };
  const unsigned first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  if (character.size() == 2) return (first & 0x1Fu) << 6 | low(1);
  if (character.size() == 3) return (first & 0x0Fu) << 12 | low(1) << 6 | low(2);
  return 0x10000;
}

// Where the character after `count` others begins.
size_t position_of(std::string_view text, size_t count) {
  size_t at = 0;
  while (count-- > 0 && at < text.size()) at += std::max<size_t>(character_length(text.substr(at)), 1);
  return at;
}

}  // namespace

std::string escaped(std::string_view text, LineBreaks breaks) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = character_length(text.substr(i));
    const std::string_view character = text.substr(i, std::max<size_t>(length, 1));
    const unsigned code = code_of(character);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", code);
    } else if (steers(code) && (breaks == LineBreaks::escaped || (code != '\n' && code != '\t'))) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += character;
    }
    i += character.size();
  }
  return out;
}

std::string shortened(std::string_view text, size_t limit) {
  if (position_of(text, limit) == text.size()) return std::string(text);
  const std::string middle = fmt::format("...[{} bytes]...", text.size());
  const size_t left = limit - std::min(limit, middle.size()), last = left / 3;
  // From the end, characters are counted by their first bytes.
  size_t end = text.size();
  for (size_t count = 0; count < last && end > 0;) {
    --end;
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80) ++count;
  }
  return std::string(text.substr(0, position_of(text, left - last))) + middle + std::string(text.substr(end));
}

std::string printable(std::string_view name) {
  return "'" + shortened(escaped(name, LineBreaks::escaped), kLongestName) + "'";
}

}  // namespace qkv

#include "text/unicode/utf8.h"

#include <utf8proc.h>

#include <algorithm>

namespace qkv {

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](size_t i, unsigned char low = 0x80, unsigned char high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return follows(1) ? 2 : 0;
  if (lead < 0xf0) {
    const auto low = static_cast<unsigned char>(lead == 0xe0 ? 0xa0 : 0x80);
    const auto high = static_cast<unsigned char>(lead == 0xed ? 0x9f : 0xbf);
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (lead > 0xf4) return 0;
  const auto low = static_cast<unsigned char>(lead == 0xf0 ? 0x90 : 0x80);
  const auto high = static_cast<unsigned char>(lead == 0xf4 ? 0x8f : 0xbf);
  return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_utf8_prefix(std::string_view text) {
  if (text.empty() || text.size() > 3 || utf8_length(text) > 0) return false;
  // The lead byte restricts only the second byte, so trying the lowest and the highest continuation is enough.
  for (const char fill : {'\x80', '\x90', '\xbf'}) {
    char whole[4] = {fill, fill, fill, fill};
    text.copy(whole, text.size());
    if (utf8_length({whole, 4}) > text.size()) return true;
  }
  return false;
}

size_t invalid_utf8_length(std::string_view text) {
  size_t length = std::min<size_t>(text.size(), 3);
  while (length > 1 && !is_utf8_prefix(text.substr(0, length))) --length;
  return length;
}

std::string take_utf8(std::string& bytes, MoreBytes more) {
  std::string out;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    size_t good = 0;
    while (const size_t length = utf8_length(rest.substr(good))) good += length;
    out += rest.substr(0, good);
    rest.remove_prefix(good);
    if (rest.empty() || (more == MoreBytes::may_follow && is_utf8_prefix(rest))) break;
    out += kReplacementCharacter;
    rest.remove_prefix(invalid_utf8_length(rest));
  }
  bytes = std::string(rest);
  return out;
}

std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<size_t>(utf8_length(text), 1));
}

std::string_view first_grapheme(std::string_view text) {
  std::string_view character = first_character(text);
  size_t end = character.size();
  if (utf8_length(character) == 0) return character;
  int32_t previous = code_point(character);
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const size_t length = utf8_length(text.substr(end));
    if (length == 0) break;
    const int32_t next = code_point(text.substr(end, length));
    if (utf8proc_grapheme_break_stateful(previous, next, &state)) break;
    previous = next;
    end += length;
  }
  return text.substr(0, end);
}

int32_t code_point(std::string_view character) {
  utf8proc_int32_t result = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                   static_cast<utf8proc_ssize_t>(character.size()), &result);
  return result;
}

}  // namespace qkv

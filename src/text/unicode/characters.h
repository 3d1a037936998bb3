// Character predicates of Hugging Face's components, in addition to the classes of char_kind.h.
#pragma once

#include <string>
#include <string_view>

#include "text/unicode/char_kind.h"

namespace qkv {

// The character at byte `at`; at < text.size().
inline Char char_at(std::string_view text, size_t at = 0) {
  const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
  return CharKinds::table().at(begin + at, begin + text.size());
}

inline bool is_stray_byte(Char c) {
  return c.bytes == 1 && c.code >= 0x80;
}
inline bool is_space(Char c) {
  return (c.kind & kSpace) != 0;
}
inline bool is_number(Char c) {
  return (c.kind & kNumber) != 0;
}
inline bool is_mark(Char c) {
  return (c.kind & kMark) != 0;
}

bool is_punctuation(Char c);      // Unicode category P, and all ASCII punctuation and symbols
bool is_word(Char c);             // \w of Rust's regex: letters, marks, digits, connectors, joiners
bool is_nonspacing_mark(Char c);  // Mn
bool is_control(Char c);          // Cc, Cf, Cs, Co
bool is_chinese(Char c);          // CJK ideographs that BERT surrounds with spaces

// UTF-8 encoding of a code point.
std::string utf8_of(uint32_t code);

// Lower case as UTF-8; one character (U+0130) becomes two.
std::string lower_case(Char c);

}  // namespace qkv

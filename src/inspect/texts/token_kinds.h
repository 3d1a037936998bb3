// What kind of mark a token is: heads that look at punctuation are counted by it.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

enum class TokenKind : uint8_t {
  other,
  period,    // . and its Chinese forms
  comma,     // , and its Chinese forms
  colon,     // : ;
  question,  // ? !
  newline,
  special,  // separators and ends
};
inline constexpr int32_t kTokenKinds = static_cast<int32_t>(TokenKind::special) + 1;

// Of a token's text: marks of one kind, with spaces around them or not.
TokenKind kind_of(std::string_view text);

TokenKind kind_of(const Tokenizer& tokenizer, int32_t id);

}  // namespace qkv

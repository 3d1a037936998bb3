// What kind of mark a token is: heads that look at punctuation are counted by it.
#pragma once

#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

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

std::vector<TokenKind> token_kinds(const Tokenizer& tokenizer);  // of every id

}  // namespace qkv

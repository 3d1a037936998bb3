// Kinds of punctuation tokens, for heads that attend to punctuation.
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
  special,  // separator and end tokens
};
inline constexpr int32_t kTokenKinds = static_cast<int32_t>(TokenKind::special) + 1;

// Of a token's text: punctuation of one kind, with or without spaces around it.
TokenKind kind_of(std::string_view text);

TokenKind kind_of(const Tokenizer& tokenizer, int32_t id);

}  // namespace qkv

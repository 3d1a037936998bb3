// Tokens and predictions as readable text: whole characters, never a replacement character for a part of one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct ShownToken {
  int32_t id = 0;
  std::string text;           // "" if an earlier token shows its character
  bool continues = false;     // whether it does
  size_t begin = 0, end = 0;  // bytes of the decoded text that it shows
};

std::vector<ShownToken> shown_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids);

// What a token adds to a text; the part of a character by its bytes: \xE7\x8C.
std::string token_text(const Tokenizer& tokenizer, int32_t id);

// What people see in place of a part of a character. Reports keep its bytes.
inline constexpr const char* kPartOfCharacter = "◌";
// Each run of bytes, \xE7\x8C, becomes one sign.
std::string with_part_signs(std::string_view text);

// The text a token would add. A part of a character is shown together with the bytes before it if they complete it,
// otherwise as bytes: \xE7\x8C.
class ShownGuess {
 public:
  ShownGuess(const Tokenizer& tokenizer, std::span<const int32_t> before);
  std::string text(int32_t id) const;

 private:
  const Tokenizer& tokenizer_;
  std::string begun_;  // bytes of an incomplete character
};

}  // namespace qkv

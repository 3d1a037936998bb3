// Tokens and guesses as people read them: whole characters, never a replacement character for a part of one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct ShownToken {
  int32_t id = 0;
  std::string text;        // "" where an earlier token shows its character
  bool continues = false;  // that is so
};

std::vector<ShownToken> shown_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids);

// What a token would add after a text. A part of a character is shown with the part that stands there already, if they
// make it whole, and otherwise by its bytes: \xE7\x8C.
class ShownGuess {
 public:
  ShownGuess(const Tokenizer& tokenizer, std::span<const int32_t> before);
  std::string text(int32_t id) const;

 private:
  const Tokenizer& tokenizer_;
  std::string begun_;  // bytes of a character that is not whole yet
};

}  // namespace qkv

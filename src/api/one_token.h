// Single tokens that a user names: by their text, or by their number.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace qkv::v1 {

// "#403" is the token 403; otherwise the one token that the text is. With `ids`, or without a tokenizer, 403 too. An Error
// of a text of several tokens shows them with their numbers. `flag` names the option.
struct TokenNaming {
  const qkv::Tokenizer* tokenizer = nullptr;
  bool ids = false;  // what else was given is token ids
};
int32_t one_token(const TokenNaming& naming, const char* flag, const std::string& text);

// What one_token() reads as this token.
std::string token_argument(const TokenNaming& naming, int32_t id);

}  // namespace qkv::v1

// Single tokens that a user names, and how they are shown.
#pragma once

#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace qkv::app {

// What a token adds to a text; the part of a character by its bytes.
std::string token_text(const Tokenizer& tokenizer, int32_t id);

// The one token that a text is. An Error that shows its tokens if it is several.
int32_t one_token(const Tokenizer& tokenizer, const char* flag, const std::string& text);

// The tokens with the highest logits, best first.
std::vector<int32_t> two_best(const std::vector<float>& logits);

}  // namespace qkv::app

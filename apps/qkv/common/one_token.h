// Single tokens that a user names.
#pragma once

#include <string>

#include "text/tokenizer/tokenizer.h"

namespace qkv::app {

// The one token that a text is. An Error that shows its tokens if it is several.
int32_t one_token(const Tokenizer& tokenizer, const char* flag, const std::string& text);

}  // namespace qkv::app

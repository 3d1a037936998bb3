// Compares a tokenizer with vectors recorded from the reference, field by field.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct TokenizerDifference {
  size_t index;  // of the case
  std::string text, field;
  Json expected, got;
};

struct TokenizerVerdict {
  size_t cases = 0, equal = 0;
  std::vector<TokenizerDifference> differences;  // the first few
};

// A list of cases with "text" and any of: ids, ids_special, tokens (or pieces), offsets, decoded, decoded_skip.
TokenizerVerdict verify_tokenizer(const Tokenizer& tokenizer, JsonText vectors, std::string_view what);

}  // namespace qkv

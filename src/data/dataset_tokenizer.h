// What packed data needs from a tokenizer: the tokens around a document, and a fingerprint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct DocumentTokens {
  std::optional<int32_t> begin, end;
};

// The special tokens that the tokenizer adds around a text. If it adds none at the end: its end-of-text token, if
// named.
DocumentTokens document_tokens(const Tokenizer& tokenizer);

// SHA-256 of the vocabulary and of the tokens of a fixed text: independent of the file format of the tokenizer.
std::string fingerprint(const Tokenizer& tokenizer);

}  // namespace qkv

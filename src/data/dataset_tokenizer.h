// How a tokenizer meets packed data: which tokens stand around a document, and a name that tells tokenizers apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct DocumentTokens {
  std::optional<int32_t> begin, end;
};

// What the tokenizer itself puts around a text; where it puts nothing behind it, its end-of-text token if it names one.
DocumentTokens document_tokens(const Tokenizer& tokenizer);

// A SHA-256 of the vocabulary and of how a fixed text is cut: the same for every file format a tokenizer comes in.
std::string fingerprint(const Tokenizer& tokenizer);

}  // namespace qkv

// Tokens as a reader sees them: a character or emoji that is spread over several tokens is one span, shown whole once,
// and each token knows which span it is part of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct DisplaySpan {
  std::string text;                         // valid UTF-8; empty for tokens that leave no text
  size_t begin = 0, end = 0;                // bytes of the decoded text
  size_t first_token = 0, token_count = 0;  // spans follow one another in the list of tokens
};

struct DisplaySpans {
  std::string text;  // all of it, with U+FFFD for bytes that are no text
  std::vector<DisplaySpan> spans;
  std::vector<size_t> span_of;  // for each token

  // A token that goes on with what the one before it began: its text is shown there.
  bool continues(size_t token) const { return spans[span_of[token]].first_token < token; }
};

DisplaySpans display_spans(const Tokenizer& tokenizer, std::span<const int32_t> ids, DecodeOptions options = {});

}  // namespace qkv

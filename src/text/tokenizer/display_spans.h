// Groups tokens into spans that can be displayed: a character or emoji split over several tokens is one span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct DisplaySpan {
  std::string text;                         // valid UTF-8; empty for tokens without text
  size_t begin = 0, end = 0;                // bytes of the decoded text
  size_t first_token = 0, token_count = 0;  // the spans partition the list of tokens
};

struct DisplaySpans {
  std::string text;  // the decoded text, U+FFFD for invalid bytes
  std::vector<DisplaySpan> spans;
  std::vector<size_t> span_of;  // for each token

  // True if the span of this token starts at an earlier token, where its text is shown.
  bool continues(size_t token) const { return spans[span_of[token]].first_token < token; }
};

DisplaySpans display_spans(const Tokenizer& tokenizer, std::span<const int32_t> ids, DecodeOptions options = {});

}  // namespace qkv

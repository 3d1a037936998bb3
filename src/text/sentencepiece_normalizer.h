// Text as SentencePiece models see it: replaced by the model's character map, extra spaces gone, spaces written as
// U+2581.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/sentencepiece_model.h"

namespace qkv {

inline constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";  // U+2581

struct NormalizedText {
  std::string text;
  std::vector<uint32_t> origin;  // where in the input each byte's source starts, and one more for the end
};

// User-defined pieces are left as they stand in the text.
NormalizedText normalize(const SentencePieceModel& model, const ByteTrie& user_defined, std::string_view input);

}  // namespace qkv

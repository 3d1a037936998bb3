// SentencePiece's normalizer: applies the character map, removes extra spaces, writes spaces as U+2581.
#pragma once

#include <string_view>

#include "text/tokenizer/models/byte_trie.h"
#include "text/tokenizer/pipeline/normalizer.h"
#include "text/tokenizer/sentencepiece/sentencepiece_model.h"

namespace qkv {

inline constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";  // U+2581

// Moves the character map out of the model. User-defined pieces in the text are not changed.
NormalizerPtr sentencepiece_normalizer(SentencePieceModel& model, ByteTrie user_defined);

}  // namespace qkv

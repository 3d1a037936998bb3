// SentencePiece models as tokenizers, with the same ids, pieces and texts as the SentencePiece library.
#pragma once

#include <filesystem>

#include "text/tokenizer/sentencepiece/sentencepiece_model.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

// Runs the model's own self-test.
TokenizerParts parts_of_sentencepiece(SentencePieceModel model);

// A .model file.
TokenizerParts parts_of_sentencepiece_file(const std::filesystem::path& file);

}  // namespace qkv

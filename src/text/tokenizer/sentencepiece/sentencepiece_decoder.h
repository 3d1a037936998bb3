// SentencePiece's decoder: drops the added prefix, turns U+2581 into spaces and byte pieces into characters.
#pragma once

#include "text/tokenizer/pipeline/decoder.h"
#include "text/tokenizer/sentencepiece/sentencepiece_model.h"

namespace qkv {

DecoderPtr sentencepiece_decoder(const SentencePieceModel& model);

}  // namespace qkv

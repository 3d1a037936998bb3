// SentencePiece's decoder: what was added at the front is dropped, spaces are spaces again, bytes become characters.
#pragma once

#include "text/tokenizer/pipeline/decoder.h"
#include "text/tokenizer/sentencepiece/sentencepiece_model.h"

namespace qkv {

DecoderPtr sentencepiece_decoder(const SentencePieceModel& model);

}  // namespace qkv

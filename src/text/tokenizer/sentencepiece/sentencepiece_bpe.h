// SentencePiece's BPE: neighbours whose joined text is a piece are merged, the highest score first, then the leftmost.
#pragma once

#include "text/tokenizer/models/byte_trie.h"
#include "text/tokenizer/models/token_model.h"
#include "text/tokenizer/pipeline/pre_tokenizer.h"
#include "text/tokenizer/sentencepiece/sentencepiece_model.h"

namespace qkv {

// The model, and what cuts a text where no merge can reach over: words repeat, whole texts do not.
struct SentencePieceBpe {
  PreTokenizerPtr cutter;
  TokenModelPtr model;
};
SentencePieceBpe sentencepiece_bpe(const SentencePieceModel& model, Vocab vocab, ByteTrie user_defined);

}  // namespace qkv

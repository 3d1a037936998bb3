// SentencePiece's BPE: adjacent symbols whose concatenation is a piece are merged, highest score first, then leftmost.
#pragma once

#include "text/tokenizer/models/byte_trie.h"
#include "text/tokenizer/models/token_model.h"
#include "text/tokenizer/pipeline/pre_tokenizer.h"
#include "text/tokenizer/sentencepiece/sentencepiece_model.h"

namespace qkv {

// The pre-tokenizer splits where no merge can cross. The ids do not change, but short pieces repeat and can be cached.
struct SentencePieceBpe {
  PreTokenizerPtr pre_tokenizer;
  TokenModelPtr model;
};
SentencePieceBpe sentencepiece_bpe(const SentencePieceModel& model, Vocab vocab, ByteTrie user_defined);

}  // namespace qkv

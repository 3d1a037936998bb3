// Trains byte-pair encoding on word counts (Sennrich, Haddow, Birch 2016): repeatedly merges the most frequent pair of
// adjacent tokens. Ties: the greatest pair, compared as bytes, left token first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer/training/word_counts.h"

namespace qkv {

struct BpeModel {
  size_t specials = 0;
  // By id: the special tokens, the 256 bytes in the order of their letters (byte_alphabet.h), the merged tokens.
  std::vector<std::string> tokens;
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // ids of the parts, in training order
};

struct BpeTrainerOptions {
  size_t vocab = 0;  // tokens in all; fewer if the corpus runs out of pairs
  std::vector<std::string> specials;
  // In letters of the byte alphabet, which are bytes, as Hugging Face counts; 0: any. With a limit a token is also whole
  // characters or a part of one: 的 is not merged with the first byte of what follows.
  size_t max_token_length = 0;
  std::function<void(size_t merges)> on_merge;
};

BpeModel train_bpe(WordCounts words, const BpeTrainerOptions& options);

}  // namespace qkv

// Byte-pair encoding learnt from counted words (Sennrich, Haddow, Birch 2016): the most frequent pair of neighbours
// becomes a token, again and again. Of equally frequent pairs the greatest wins, compared as bytes, first token first.
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
  // By id: the special tokens, the 256 bytes in the order of their letters (byte_letter), the merges.
  std::vector<std::string> tokens;
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // ids of their parts, best first
};

struct BpeTrainerOptions {
  size_t vocab = 0;  // tokens in all; fewer come out where the corpus has no pairs left
  std::vector<std::string> specials;
  std::function<void(size_t merges)> on_merge;
};

BpeModel train_bpe(WordCounts words, const BpeTrainerOptions& options);

}  // namespace qkv

// Stories of the built-in world as token ids, with a small BPE tokenizer trained on them, in memory.
#pragma once

#include "data/token_text.h"
#include "text/tokenizer/tokenizer.h"
#include "train/objective.h"

namespace qkv {

class WorldTexts {
 public:
  static constexpr size_t kVocabulary = 512;

  explicit WorldTexts(int64_t stories);
  // Cached: the texts are the same for all seeds and labs.
  static const WorldTexts& of(int64_t stories);

  int64_t vocabulary() const { return static_cast<int64_t>(kVocabulary); }
  // `texts` windows of `length` tokens each, drawn by seed and step; a window may span several stories.
  TrainBatch batch(uint64_t seed, int64_t step, int64_t texts, int64_t length) const;
  // Windows of stories that batch() never draws.
  std::vector<TokenText> held_out(int64_t texts, int64_t length) const;

 private:
  std::vector<int32_t> train_, held_out_;
};

}  // namespace qkv

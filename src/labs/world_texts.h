// The built-in world as tokens, in memory: a small tokenizer learnt from it, and windows of its stories.
#pragma once

#include "data/token_text.h"
#include "text/tokenizer/tokenizer.h"
#include "train/objective.h"

namespace qkv {

class WorldTexts {
 public:
  static constexpr size_t kVocabulary = 512;

  explicit WorldTexts(int64_t stories);
  // Made once for all seeds and labs: what there is to learn does not depend on them.
  static const WorldTexts& of(int64_t stories);

  int64_t vocabulary() const { return static_cast<int64_t>(kVocabulary); }
  // `texts` windows of `length` tokens each, drawn by seed and step; a story may begin inside one.
  TrainBatch batch(uint64_t seed, int64_t step, int64_t texts, int64_t length) const;
  // Stories nobody was taught: of other numbers than those of batch().
  std::vector<TokenText> held_out(int64_t texts, int64_t length) const;

 private:
  std::vector<int32_t> taught_, held_;
};

}  // namespace qkv

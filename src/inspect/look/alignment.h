// Which words of a source a translation looks at: word alignment from cross-attention, the mean of one layer's heads.
//
//   A(target word, source word) = mean over the word's tokens, sum over the source word's tokens
// Mass on tokens that are no words (ends of sentences) is left out, and the rest of each row is made 1 again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "inspect/texts/reading.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

// Words as a reader sees them, and the tokens each is made of. Between spaces; every Chinese token, emoji and mark of
// punctuation is one of its own; special tokens are none.
struct TokenWord {
  std::string text;
  std::vector<size_t> tokens;
};
std::vector<TokenWord> words_of(const Tokenizer& tokenizer, std::span<const int32_t> ids);

struct WordAlignment {
  std::vector<TokenWord> source, target;
  std::vector<double> weights;  // [target, source]; a row sums to 1, or is 0 where it looked at no word
  int64_t layer = 0;

  double at(size_t target_word, size_t source_word) const { return weights[target_word * source.size() + source_word]; }
  // Source and target word, for every target word the one it looks at most: what the Pharaoh format writes as i-j.
  std::vector<std::pair<size_t, size_t>> pairs() const;
};

struct AlignOptions {
  Precision precision = Precision::f32();
  std::optional<int64_t> layer;  // otherwise alignment_layer()
};

int64_t alignment_layer(const ModelSpec& spec);

// An Error for models that do not translate, and for a layer that is not there.
WordAlignment align(const Model& model, const Engine& engine, const Tokenizer& tokenizer, const TokenText& pair,
                    const AlignOptions& options = {});

}  // namespace qkv

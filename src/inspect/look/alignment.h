// Word alignment from cross-attention: the mean over the heads of one layer.
//
//   A(target word, source word) = mean over the word's tokens, sum over the source word's tokens
// Weight on special tokens is dropped and each row is normalised again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "inspect/texts/reading.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

// Words and their tokens. Words are separated by spaces; each Chinese token, emoji and punctuation mark is a word of
// its own; special tokens are not words.
struct TokenWord {
  std::string text;
  std::vector<size_t> tokens;
};
std::vector<TokenWord> words_of(const Tokenizer& tokenizer, std::span<const int32_t> ids);

struct WordAlignment {
  std::vector<TokenWord> source, target;
  std::vector<double> weights;  // [target, source]; rows sum to 1, or are 0 without weight on any word
  int64_t layer = 0;

  double at(size_t target_word, size_t source_word) const { return weights[target_word * source.size() + source_word]; }
  // (source, target) for every target word with its heaviest source word: i-j of the Pharaoh format.
  std::vector<std::pair<size_t, size_t>> pairs() const;
};

struct AlignOptions {
  Precision precision = Precision::f32();
  std::optional<int64_t> layer;  // none: alignment_layer()
};

int64_t alignment_layer(const ModelSpec& spec);

// An Error for models without cross-attention or a layer that does not exist.
WordAlignment align(const Model& model, const Engine& engine, const Tokenizer& tokenizer, const TokenText& pair,
                    const AlignOptions& options = {});

}  // namespace qkv

// Heads against gold labels: is the word with the most attention the labelled one? Syntactic relations (Clark et al.
// 2019, Voita et al. 2019), coreference (Clark) and GAP's choice between two names, each compared with baselines that
// need no attention.
#pragma once

#include "inspect/heads/head_id.h"
#include "inspect/report/estimate.h"
#include "inspect/texts/labelled_text.h"
#include "inspect/texts/reading.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct LabelScore {
  static constexpr double kMargin = 0.10;  // required above the best baseline

  std::string name, direction;  // "nsubj", "dependent to head"
  struct Baseline {
    std::string name;  // "word 1 back"
    Estimate score;
  };
  std::vector<Baseline> baselines;
  std::vector<Estimate> accuracy, coverage;  // per head of all_heads(); n = 0 where not measured

  const Baseline& best_baseline() const;
  size_t best_head() const;
  // At least kMargin above the best baseline, and the whole interval above it.
  bool holds(size_t head) const;
};

struct LabelScores {
  std::vector<LabelScore> labels;  // those with enough decisions, most frequent first
  int64_t texts = 0, words = 0, decisions = 0;
  int64_t lost = 0;           // decisions skipped: a word was cut off or has no token of its own
  bool earlier_only = false;  // causal heads: only labels whose other end is earlier count
};

struct LabelOptions {
  int64_t length = 512;  // longer texts are cut
  int64_t fewest = 20;   // labels with fewer decisions are left out
  uint64_t seed = 0;
  Reader::Finished finished = {};
};

// The tokens of each word: those that overlap it in bytes. Special tokens belong to no word.
std::vector<std::vector<int32_t>> tokens_of_words(const LabelledText& text, const Encoding& encoding);

LabelScores label_scores(Reader& reader, const Tokenizer& tokenizer, std::span<const LabelledText> texts,
                         const LabelOptions& options);

}  // namespace qkv

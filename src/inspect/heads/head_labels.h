// Heads against gold labels: does the strongest word a head looks at stand where the label says? Syntactic relations
// (Clark et al. 2019, Voita et al. 2019), coreference (Clark), and GAP's choice between two names, each beside what
// one would score without looking.
#pragma once

#include "inspect/heads/head_id.h"
#include "inspect/report/estimate.h"
#include "inspect/texts/labelled_text.h"
#include "inspect/texts/reading.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

struct LabelScore {
  static constexpr double kMargin = 0.10;  // over the best baseline: what counts as more than an offset

  std::string name, direction;  // "nsubj", "dependent to head"
  struct Baseline {
    std::string name;  // "word 1 back"
    Estimate score;
  };
  std::vector<Baseline> baselines;
  std::vector<Estimate> accuracy, coverage;  // of each of all_heads(); n = 0 where a head was not asked

  const Baseline& best_baseline() const;
  size_t best_head() const;
  // Ten points over the best baseline, and the interval above it.
  bool holds(size_t head) const;
};

struct LabelScores {
  std::vector<LabelScore> labels;  // those with enough arcs, most first
  int64_t texts = 0, words = 0, decisions = 0;
  int64_t lost = 0;           // decisions whose words the model does not see: cut off, or no token of their own
  bool earlier_only = false;  // heads that see only what is left: only labels whose other end is earlier count
};

struct LabelOptions {
  int64_t length = 512;  // most tokens of a text
  int64_t fewest = 20;   // decisions of a label, for it to be shown
  uint64_t seed = 0;
  Reader::Finished finished = {};
};

// The tokens of each word: those that share a byte with it. Special tokens belong to none.
std::vector<std::vector<int32_t>> tokens_of_words(const LabelledText& text, const Encoding& encoding);

LabelScores label_scores(Reader& reader, const Tokenizer& tokenizer, std::span<const LabelledText> texts,
                         const LabelOptions& options);

}  // namespace qkv

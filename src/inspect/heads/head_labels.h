// Heads against gold labels: is the word with the most attention the labelled one? Syntactic relations (Clark et al.
// 2019, Voita et al. 2019), coreference (Clark) and GAP's choice between two names, each compared with baselines that
// need no attention. The head is chosen on one half of the texts and judged on the other: the best of many heads is
// partly the luckiest.
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
    Estimate score;    // on the texts the head is judged on
  };
  std::vector<Baseline> baselines;
  std::vector<Estimate> accuracy, coverage;  // per head of all_heads(), on all texts; n = 0 where not measured
  size_t head = 0;                           // the best one on the texts with even numbers
  Estimate chosen;                           // its accuracy there
  Estimate judged, judged_coverage;          // and on the others

  const Baseline& best_baseline() const;
  int64_t decisions() const { return chosen.n + judged.n; }
  // On the texts it was not chosen on: at least kMargin above the best baseline, and the whole interval above it.
  bool found() const;
};

// Which of several texts a head is judged on; it is chosen on the others.
constexpr bool judges(size_t text) {
  return text % 2 == 1;
}
// Sums of one head or baseline per text, of those texts alone.
std::vector<TextSum> of_half(std::span<const TextSum> texts, bool judging);
// The head with the most right answers on the texts it is chosen on. `right`: [heads, texts].
size_t choose_head(std::span<const TextSum> right, size_t texts);

struct LabelScores {
  std::vector<LabelScore> labels;  // those with enough decisions, most frequent first
  int64_t texts = 0, words = 0, decisions = 0;
  int64_t lost = 0;           // decisions skipped: a word was cut off or has no token of its own
  bool earlier_only = false;  // causal heads: only labels whose other end is earlier count
};

struct LabelOptions {
  int64_t length = 512;  // longer texts are cut, and those longer than a pass of the reader
  int64_t fewest = 20;   // labels with fewer decisions in either half of the texts are left out
  uint64_t seed = 0;
  Reader::Finished finished = {};
};

// The tokens of each word: those that overlap it in bytes. Special tokens belong to no word.
std::vector<std::vector<int32_t>> tokens_of_words(const LabelledText& text, const Encoding& encoding);

LabelScores label_scores(Reader& reader, const Tokenizer& tokenizer, std::span<const LabelledText> texts,
                         const LabelOptions& options);

}  // namespace qkv

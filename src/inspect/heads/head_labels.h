// Heads against gold labels: is the word with the most attention, among the other words, the labelled one? Syntactic
// relations (Clark et al. 2019, Voita et al. 2019), coreference (Clark) and GAP's choice between two names, each
// compared with baselines that need no attention. The head is chosen on one half of the texts and judged on the other:
// the best of many heads is partly the luckiest.
//
// The query's own word is no candidate, so a head may be right about the others while nearly all of its attention stays
// on itself. A relation therefore also needs a least share of the attention, and a head that carries something from
// there, by patching, where pairs of texts can be made (label_pairs.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/heads/head_id.h"
#include "inspect/report/estimate.h"
#include "inspect/texts/labelled_text.h"
#include "inspect/texts/reading.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

// What patching says of the head of a label, on the texts it is judged on.
struct LabelCause {
  static constexpr double kLeastRestored = 0.10;

  std::string change;            // how the texts of a pair differ
  int64_t made = 0, usable = 0;  // pairs; usable: their texts have different answers
  Estimate restored;             // share of the answer that comes back; n counts usable pairs
  Estimate others;               // the mean of all other heads
  size_t most_head = 0;          // of all heads the one that brings back most, wherever it looks
  Estimate most;
  Estimate above;  // restored - others, paired

  // At least kLeastRestored comes back; that, and what it is above the other heads, is above 0 in the whole interval.
  bool holds() const {
    return restored.has_interval() && restored.mean >= kLeastRestored && restored.low > 0 && above.low > 0;
  }
};

struct LabelScore {
  static constexpr double kMargin = 0.10;     // required above the best baseline
  static constexpr double kLeastMass = 0.20;  // of the query word's attention

  std::string name, direction;  // "nsubj", "dependent to head"
  struct Baseline {
    std::string name;  // "word 1 back"
    Estimate score;    // on the texts the head is judged on
  };
  std::vector<Baseline> baselines;
  std::vector<Estimate> accuracy, coverage;  // per head of all_heads(), on all texts; n = 0 where not measured
  std::vector<Estimate> mass, own;           // share of the query word's attention: on the right words, on itself
  size_t head = 0;                           // the best one on the texts with even numbers
  Estimate chosen;                           // its accuracy there
  Estimate judged, judged_coverage;          // and on the others
  Estimate judged_mass, judged_own;
  Estimate above;                   // judged - the best baseline, paired
  std::optional<LabelCause> cause;  // absent: no pairs were made
  std::string no_cause = {};        // why
  bool unpaired = false;            // because no pairs can be made: then attention alone decides

  const Baseline& best_baseline() const;
  int64_t decisions() const { return chosen.n + judged.n; }
  // All on texts it was not chosen on. Right: at least kMargin above the best baseline, the paired interval above 0.
  bool right() const;
  bool attends() const;  // the whole interval of its mass is above kLeastMass
  // Both, and what patching says where pairs could be made.
  bool found() const { return right() && attends() && (cause ? cause->holds() : unpaired); }
};

// Which of several texts a head is judged on; it is chosen on the others.
constexpr bool judges(size_t text) {
  return text % 2 == 1;
}
// Sums of one head or baseline per text, of those texts alone.
std::vector<TextSum> of_half(std::span<const TextSum> texts, bool judging);
// The head with the most right answers on the texts it is chosen on, of those with enough mass there if there are any.
// `right` and `mass`: [heads, texts].
size_t choose_head(std::span<const TextSum> right, std::span<const TextSum> mass, size_t texts);

struct LabelScores {
  std::vector<LabelScore> labels;  // those with enough decisions, most frequent first
  int64_t texts = 0, words = 0, decisions = 0;
  int64_t lost = 0;           // decisions skipped: a word was cut off or has no token of its own
  bool earlier_only = false;  // causal heads: only labels whose other end is earlier count
  size_t comparisons = 0;     // labels that were asked; the rules do not correct for them
};

struct LabelOptions {
  int64_t length = 512;  // longer texts are cut, and those longer than a pass of the reader
  int64_t fewest = 20;   // labels with fewer decisions in either half of the texts are left out
  uint64_t seed = 0;
  std::vector<std::string> names = {};  // labels to keep; empty: all
  Reader::Finished finished = {};       // told how many texts are done; also called, with all of them, for each pair
};

// The tokens of each word: those that overlap it in bytes. Special tokens belong to no word.
std::vector<std::vector<int32_t>> tokens_of_words(const LabelledText& text, const Encoding& encoding);

LabelScores label_scores(Reader& reader, const Tokenizer& tokenizer, std::span<const LabelledText> texts,
                         const LabelOptions& options);

}  // namespace qkv

// Word alignment by single heads of cross-attention, judged against gold pairs. Head, row and least weight are chosen on
// one half of the sentence pairs and judged on the other, beside alignments that need no attention.
//
//   AER = 1 - (|A n S| + |A n P|) / (|A| + |S|)    A the links found, S the sure gold ones, P these and the possible
//                                                  ones, over all sentences (Och and Ney 2003)
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/heads/head_id.h"
#include "inspect/report/estimate.h"
#include "inspect/texts/labelled_text.h"
#include "inspect/texts/reading.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

using WordPairs = std::vector<std::pair<size_t, size_t>>;  // numbers of source and target words

struct GoldPair {
  LabelledText source, target;  // text and words
  WordPairs links;              // the sure ones, sorted
  WordPairs possible = {};      // neither wanted nor wrong, sorted
};

// A JSON object a line: {"source": "The cat sleeps.", "target": "猫在睡觉。", "source_words": [[0, 3], [4, 7], ...],
// "target_words": [[0, 3], ...], "pairs": [[1, 0], [2, 1]], "possible": [[0, 0]]}: words as byte ranges, pairs of source
// and target words; possible ones may be left out. A word without a pair has no counterpart. An Error names the line.
std::vector<GoldPair> read_gold_pairs(std::string_view content, const std::string& what);

double alignment_error(const WordPairs& found, const GoldPair& gold);

// Links that need no model: the source word at the same share of the sentence, and IBM model 1, trained by EM on the
// sentences themselves (Brown et al. 1993; a target word may have no source).
WordPairs diagonal_links(const GoldPair& pair);
std::vector<WordPairs> model1_links(std::span<const GoldPair> pairs);

struct AlignmentChoice {
  HeadId head;
  bool reading = false;  // the row that reads the target word; otherwise the row that predicts it
  double least = 0;      // a link has at least this share of the weight on words
};

struct AlignmentScore {
  AlignmentChoice choice;
  Estimate chosen, judged;                // AER; n counts links, found and gold
  Estimate diagonal, model1;              // on the sentences the choice is judged on
  Estimate below_diagonal, below_model1;  // what they have more errors than the head, paired
  std::vector<Estimate> best;             // per head of cross-attention, its best choice, on those it is chosen on
  int64_t sentences = 0, links = 0;
};

struct PairTokenizers {
  const Tokenizer &source, &target;
  std::vector<int32_t> start;  // tokens a target starts with
};
AlignmentScore score_alignment(Reader& reader, const PairTokenizers& tokenizers, std::span<const GoldPair> pairs,
                               const Reader::Finished& finished = {});

}  // namespace qkv

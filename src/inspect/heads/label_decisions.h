// Gold labels as decisions: given a query word, which candidate word is the right one? With baselines that need no
// attention.
#pragma once

#include <array>

#include "inspect/heads/head_labels.h"

namespace qkv {

struct Decision {
  size_t label = 0, query = 0;  // query, candidates, right: numbers of words
  std::vector<size_t> candidates, right;
};
struct DecidedText {
  std::vector<std::vector<int32_t>> words;  // tokens of each word
  std::vector<Decision> decisions;          // sorted by query
  int64_t rows = 0;                         // tokens that belong to words
};
struct DecidedLabel {
  std::string name, direction;
  std::vector<std::pair<std::string, std::vector<TextSum>>> baselines = {};
};

class Decisions {
 public:
  Decisions(const ModelSpec& spec, const Tokenizer& tokenizer, std::span<const LabelledText> labelled,
            const LabelOptions& options);

  std::vector<DecidedText> texts;
  std::vector<TokenText> seen;  // as the model reads them
  std::vector<DecidedLabel> labels;
  int64_t words = 0, lost = 0;

 private:
  size_t label(const std::string& name, const std::string& direction);
  void add(Decision decision, std::initializer_list<std::pair<const char*, size_t>> guesses);
  void add_arcs(const LabelledText& text);
  void add_mentions(const LabelledText& text);
  void add_choices(const LabelledText& text);
  bool usable(size_t word) const;               // has tokens, and they are not the first of the text
  bool apart(size_t word, size_t query) const;  // has a token that is not one of the query's
  bool visible(const LabelledText& text, const LabelledText::Choice& choice) const;
  void guess_offsets();
  void drop_small(int64_t fewest);

  bool earlier_only_;
  std::array<size_t, 2> choices_ = {};  // of each gender so far
  size_t fair_share_ = 0;               // most of each gender in the balanced label
};

}  // namespace qkv

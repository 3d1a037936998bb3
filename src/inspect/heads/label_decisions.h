// Gold labels as questions to a head: from this word, which of these is meant? With what one would answer without
// looking.
#pragma once

#include <array>

#include "inspect/heads/head_labels.h"

namespace qkv {

struct Decision {
  size_t label = 0, query = 0;  // a word
  std::vector<size_t> candidates, right;
};
struct DecidedText {
  std::vector<std::vector<int32_t>> words;  // their tokens
  std::vector<Decision> decisions;          // those of one query together
  int64_t rows = 0;                         // tokens that are words
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
  bool known(size_t word) const;  // and not so early that it sees nothing
  bool visible(const LabelledText& text, const LabelledText::Choice& choice) const;
  void guess_offsets();
  void drop_small(int64_t fewest);

  bool earlier_only_;
  std::array<size_t, 2> choices_ = {};  // of each gender so far, and how many both have
  size_t fair_share_ = 0;
};

}  // namespace qkv

// Pairs of texts that differ in the word a label points to, so that patching can tell what a head carries from there:
//
//   Ruby, sitting beside Barry, drank      Barry, sitting beside Ruby, drank
//
// Each ends with the query word. For relations two names of the sentence are exchanged where there are two; a name that
// a pronoun means gives its place to another name of that pronoun; GAP's two names are exchanged; for other relations
// the word gives its place to another one that stands in that relation elsewhere. Both texts have as many tokens.
#pragma once

#include <string>
#include <vector>

#include "inspect/heads/label_decisions.h"

namespace qkv {

struct LabelPair {
  size_t text = 0;             // of the labelled ones
  TokenText clean, corrupt;    // as it stands there, and changed
  std::vector<int32_t> query;  // positions of the query word's tokens; the last is the text's last
};

class LabelPairs {
 public:
  LabelPairs(const Tokenizer& tokenizer, std::span<const LabelledText> labelled, const Decisions& decided)
      : tokenizer_(tokenizer), labelled_(labelled), decided_(decided) {}

  enum class Change : uint8_t { names, word };  // two names exchanged, or one word replaced

  // Whether there can be any: coreference of names and nouns has none, for the query would change too.
  bool possible(size_t label) const {
    return is_pronoun(label) || !decided_.labels[label].name.starts_with("coreference");
  }

  // At most `each` of a text, from one half of the texts; in the order of the texts.
  std::vector<LabelPair> of(size_t label, bool judging, Change change, size_t each) const;
  static const char* name_of(Change change);

 private:
  struct Replaced {
    size_t word = 0;
    std::string by = {};
  };
  bool is_pronoun(size_t label) const;
  bool is_choice(size_t label) const;
  std::vector<std::string> words_in_relation(size_t label) const;
  std::vector<Replaced> exchanged(const LabelledText& text, const Decision& decision, bool choice) const;
  std::optional<LabelPair> pair_of(size_t text, const Decision& decision, std::span<const Replaced> change) const;

  const Tokenizer& tokenizer_;
  std::span<const LabelledText> labelled_;
  const Decisions& decided_;
};

}  // namespace qkv

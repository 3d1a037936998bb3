// A language of 46 words in which every next word is known up to a distribution: by how often words are, by the word
// before, by the grammar, and by what the text has said before.
#pragma once

#include <span>
#include <vector>

#include "world/draw.h"

namespace qkv {

// A sentence: an article of one of three classes, 0 to 2 adjectives, a noun of the class, its name, a verb of the class, a
// full stop. Every text gives its nouns names of its own, drawn anew, no two the same: a name is known only where its noun
// comes again.
class SmallLanguage {
 public:
  static constexpr int32_t kClasses = 3, kAdjectives = 8;
  static constexpr int32_t kNouns = 2, kVerbs = 4;  // of a class
  static constexpr int32_t kNames = 16;             // to choose from
  static constexpr int32_t kStop = 0, kArticle = 1, kAdjective = kArticle + kClasses, kNoun = kAdjective + kAdjectives,
                           kName = kNoun + kClasses * kNouns, kVerb = kName + kNames,
                           kVocabulary = kVerb + kClasses * kVerbs;

  // One text of `length` words, a stop before the first one.
  static std::vector<int32_t> text(world::Draw& draw, int32_t length);

  // Probabilities of the next word after each word of a text, by grammar alone: names are all equally probable.
  static std::vector<std::vector<float>> by_grammar(std::span<const int32_t> text);
  // For each word: is the next one the name of a noun that the text has named before?
  static std::vector<bool> before_known_name(std::span<const int32_t> text);
};

}  // namespace qkv

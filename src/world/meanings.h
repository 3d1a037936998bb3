// What words mean in the other language, apart from the nouns and adjectives of the lexicon. A word may have several
// meanings; which one stands in a sentence is for the reader of both to find.
#pragma once

#include <span>
#include <string_view>

namespace qkv::world {

struct Meaning {
  std::string_view en, zh;  // a lemma, a word
};
std::span<const Meaning> meanings();

}  // namespace qkv::world

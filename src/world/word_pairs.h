// Which word of a sentence is the translation of which: from what the realisers made the words of.
//
//   mentions      the k-th mention of an entity and the k-th in the other language, with adjective, number, measure word
//                 and the parts of a name
//   other words   those at the same place of both dependency trees, if it is the only one there and of the same kind
//   marks         the last mark and quotes
//
// Articles, particles and words that only one language has are without a pair.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "world/story.h"

namespace qkv {

// Numbers of English and Chinese words, from 0, sorted.
std::vector<std::pair<size_t, size_t>> word_pairs(const StorySentence& english, const StorySentence& chinese);

}  // namespace qkv

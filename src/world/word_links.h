// Which word of a sentence is the translation of which: from what the realisers made the words of.
//
//   mentions      the k-th mention of an entity and the k-th in the other language, with adjective, number, measure word
//                 and the parts of a name
//   other words   those at the same place of both dependency trees, if it is the only one there and of the same kind;
//                 then words and their meanings (meanings.h)
//   marks         those of a kind, in order, if both sentences have as many
//
// Articles, particles and measure words that only one language has may be aligned with what their heads are: possible
// links, as people who align by hand distinguish them from sure ones (Och and Ney 2003).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "world/story.h"

namespace qkv {

// Numbers of English and Chinese words, from 0, sorted.
struct WordLinks {
  std::vector<std::pair<size_t, size_t>> sure, possible;
};
WordLinks word_links(const StorySentence& english, const StorySentence& chinese);

}  // namespace qkv

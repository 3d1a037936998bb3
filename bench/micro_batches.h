// How a bench divides the tokens of a training step: into micro-batches of whole texts.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace qkv::bench {

// As many micro-batches as `asked`, or, if that is 0, at most as many as `usual`, a power of two. A text has `text` tokens,
// of a pair both sides. An Error if they are not whole texts.
inline int64_t micro_batches_of_whole_texts(int64_t tokens, int64_t text, int64_t asked, int64_t usual) {
  int64_t micro_batches = asked > 0 ? asked : usual;
  while (asked == 0 && micro_batches > 1 && tokens % (micro_batches * text) != 0) micro_batches /= 2;
  QKV_CHECK(tokens % (micro_batches * text) == 0, tokens, " tokens in ", micro_batches, " micro-batch",
            micro_batches == 1 ? "" : "es", " are not whole texts of ", text, " tokens",
            Hint("choose --tokens as a multiple of --seq times --micro-batches (of pairs, of twice that)"));
  return micro_batches;
}

}  // namespace qkv::bench

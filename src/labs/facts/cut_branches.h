// Questions answered by a model from which the feed-forwards were cut: what each writes is replaced by its mean over the
// questions of the same group, at the same place. What they say of this one question is gone, the rest stays.
#pragma once

#include "inspect/texts/reading.h"

namespace qkv {

struct GroupedTexts {
  std::span<const TokenText> texts;  // those of one group have the same length
  std::span<const int32_t> groups;   // of each text
};

// The likeliest token after each text.
std::vector<int32_t> top_guesses(Reader& reader, const GroupedTexts& of);
std::vector<int32_t> top_guesses_without_feed_forwards(Reader& reader, const GroupedTexts& of);

}  // namespace qkv

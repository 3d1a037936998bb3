// Which token's story to tell first: a word whose guess the layers worked out, with a head that fetched something from
// another word further back; not a comma, and not a guess that the embedding already had.
#pragma once

#include "inspect/lens/ladder.h"
#include "inspect/texts/shown_tokens.h"

namespace qkv {

// The last token where nothing is worth more. Of texts that are kept whole.
int64_t token_worth_telling(const Looked& seen, const Ladder& ladder, std::span<const ShownToken> tokens);

}  // namespace qkv

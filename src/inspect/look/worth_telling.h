// Which token's story to tell first: a word whose guess the layers worked out, with a head that fetched something from
// another word further back; not a comma, and not a guess that the embedding already had. The last token if it is nearly
// as good as the best: its guess is the answer that a reader sees.
#pragma once

#include "inspect/lens/ladder.h"
#include "inspect/texts/shown_tokens.h"

namespace qkv {

struct TokenWorth {
  int64_t token = 0;
  double worth = 0;  // 0 to 1
};
// The last token, worth nothing, where none is worth more. Of texts that are kept whole.
TokenWorth token_worth_telling(const Looked& seen, const Ladder& ladder, std::span<const ShownToken> tokens);

}  // namespace qkv

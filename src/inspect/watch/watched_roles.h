// The part of a snapshot that takes a pass: what heads look at, how well texts are predicted, how near the predictions
// are to plain frequencies. Attention is measured inside the kernel; no pattern is ever stored.
#pragma once

#include <span>

#include "inspect/heads/head_id.h"
#include "inspect/texts/reading.h"
#include "inspect/texts/token_counts.h"
#include "inspect/watch/snapshot.h"

namespace qkv {

// On `texts`: previous, first, entropy (over ln of the keys a row sees) and distance of rows from the third on; losses
// and divergences of all targets. On `repeated`, texts of 1 + 2 L tokens whose second half repeats the first: duplicate
// (mass on the same token of the first half) and induction (on the one after it), of the second half's rows. What looks
// across at an encoder has only first and entropy.
void measure_roles(Reader& reader, std::span<const TokenText> texts, std::span<const TokenText> repeated,
                   const TokenCounts& counts, Snapshot& into);

// Where the heads of an attention begin in the order of all_heads().
size_t first_head(const ModelSpec& spec, Place place);

}  // namespace qkv

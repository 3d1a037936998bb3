// The part of a snapshot that needs a forward pass: head roles, losses, and the divergence of the predictions from
// plain frequencies. Attention is measured inside the kernel; no attention map is stored.
#pragma once

#include <span>

#include "inspect/heads/head_id.h"
#include "inspect/texts/reading.h"
#include "inspect/texts/token_counts.h"
#include "inspect/watch/snapshot.h"

namespace qkv {

// On `texts`: previous, first, entropy (divided by ln of the visible keys) and distance, for rows from the third on;
// losses and divergences of all targets. On `repeated`, texts of 1 + 2 L tokens whose second half repeats the first:
// duplicate (mass on the same token of the first half) and induction (on the token after it), for rows of the second
// half. Cross-attention has only first and entropy.
void measure_roles(Reader& reader, std::span<const TokenText> texts, std::span<const TokenText> repeated,
                   const TokenCounts& counts, Snapshot& into);

// Index of an attention's first head in all_heads().
size_t first_head(const ModelSpec& spec, Place place);

}  // namespace qkv

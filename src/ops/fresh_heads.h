// Heads of a pass on their way to the cache that they attend to.
#pragma once

#include <optional>

#include "ops/ops.h"

namespace qkv::ops {

// For Kernels::cached_attention, where the table has it and nothing has to be looked at in between.
std::optional<CacheHeadsArgs> at_once(Context& cx, Place place, const FreshHeads& heads);
// Step by step; returns q.
Tensor cache_heads(Context& cx, const FreshHeads& heads);

}  // namespace qkv::ops

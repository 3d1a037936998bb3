// Statistics of a packed split: lengths and token counts, in one pass.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "data/dataset.h"

namespace qkv {

struct SplitStats {
  // By part (document; or source, target): lengths[p][b] entries have 2^b to 2^(b+1) - 1 tokens.
  std::vector<std::vector<uint64_t>> lengths;
  uint64_t distinct = 0;                               // number of ids that occur
  std::vector<std::pair<int32_t, uint64_t>> frequent;  // id and count, most frequent first
};

// on_progress gets the tokens read so far.
SplitStats split_stats(const PackedSplit& split, size_t most_frequent, FunctionRef<void(uint64_t tokens)> on_progress);

}  // namespace qkv

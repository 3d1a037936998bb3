#include "text/bpe_merge.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

namespace qkv {

MergeTable::MergeTable(size_t merges) : slots_(std::bit_ceil(std::max<size_t>(2 * merges, 2))) {}

void MergeTable::add(int32_t left, int32_t right, Merge merge) {
  const uint64_t pair = key(left, right);
  const size_t mask = slots_.size() - 1;
  size_t i = hash_number(pair) & mask;
  while (slots_[i].pair != pair && slots_[i].pair != UINT64_MAX) i = (i + 1) & mask;
  slots_[i] = {pair, merge};
}

namespace {

void merge_few(const MergeTable& merges, BpeSymbols& symbols) {
  size_t count = symbols.count;
  if (count < 2) return;
  int32_t* ids = symbols.ids;
  uint32_t* ends = symbols.ends;
  uint32_t ranks[BpeSymbols::kFew];
  int32_t joined[BpeSymbols::kFew];
  const auto look = [&](size_t i) {
    const MergeTable::Merge merge = merges.find(ids[i], ids[i + 1]);
    ranks[i] = merge.rank;
    joined[i] = merge.id;
  };
  for (size_t i = 0; i + 1 < count; ++i) look(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == MergeTable::kNoRank) break;
    ids[best] = joined[best];
    for (size_t i = best; i + 1 < count; ++i) ends[i] = ends[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) ids[i] = ids[i + 1];
    for (size_t i = best; i + 2 < count; ++i) {
      ranks[i] = ranks[i + 1];
      joined[i] = joined[i + 1];
    }
    --count;
    if (best > 0) look(best - 1);
    if (best + 1 < count) look(best);
  }
  symbols.count = count;
}

void merge_many(const MergeTable& merges, BpeSymbols& symbols) {
  constexpr uint32_t kNone = UINT32_MAX;
  const auto count = static_cast<uint32_t>(symbols.count);
  std::vector<uint32_t> before(count), after(count), ranks(count, MergeTable::kNoRank);
  std::vector<int32_t> joined(count);
  // Lowest rank first, then leftmost: both in one number.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> waiting;
  const auto look = [&](uint32_t i) {
    const MergeTable::Merge merge = after[i] == kNone ? MergeTable::Merge{MergeTable::kNoRank, -1}
                                                      : merges.find(symbols.ids[i], symbols.ids[after[i]]);
    ranks[i] = merge.rank;
    joined[i] = merge.id;
    if (merge.rank != MergeTable::kNoRank) waiting.push(uint64_t{merge.rank} << 32 | i);
  };
  for (uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? kNone : i - 1;
    after[i] = i + 1 == count ? kNone : i + 1;
  }
  for (uint32_t i = 0; i < count; ++i) look(i);
  while (!waiting.empty()) {
    const uint64_t top = waiting.top();
    waiting.pop();
    const auto i = static_cast<uint32_t>(top);
    if (ranks[i] != top >> 32) continue;  // one of the two has been joined with another since
    const uint32_t gone = after[i];
    symbols.ids[i] = joined[i];
    symbols.ends[i] = symbols.ends[gone];
    ranks[gone] = MergeTable::kNoRank;
    after[i] = after[gone];
    if (after[i] != kNone) before[after[i]] = i;
    look(i);
    if (before[i] != kNone) look(before[i]);
  }
  size_t kept = 0;
  for (uint32_t i = 0; i != kNone; i = after[i]) {
    symbols.ids[kept] = symbols.ids[i];
    symbols.ends[kept++] = symbols.ends[i];
  }
  symbols.count = kept;
}

}  // namespace

void merge(const MergeTable& merges, BpeSymbols& symbols) {
  symbols.count <= BpeSymbols::kFew ? merge_few(merges, symbols) : merge_many(merges, symbols);
}

}  // namespace qkv

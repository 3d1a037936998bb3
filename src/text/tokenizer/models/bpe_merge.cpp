#include "text/tokenizer/models/bpe_merge.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace qkv {
namespace {

using Merge = MergeTable::Merge;
constexpr uint32_t kNoRank = MergeTable::kNoRank;

void merge_few(const MergeTable& merges, BpeSymbols& symbols, std::span<const Merge> pairs) {
  uint32_t ranks[BpeSymbols::kFew];  // of the pair of each symbol and the next
  int32_t joined[BpeSymbols::kFew];  // id of the merged pair
  uint8_t before[BpeSymbols::kFew], after[BpeSymbols::kFew];
  int32_t* ids = symbols.ids;
  uint32_t* ends = symbols.ends;
  const size_t last = symbols.count - 1;
  const auto set = [&](size_t i, Merge merge) {
    ranks[i] = merge.rank;
    joined[i] = merge.id;
  };
  for (size_t i = 0; i <= last; ++i) {
    before[i] = static_cast<uint8_t>(i - 1);
    after[i] = static_cast<uint8_t>(i + 1);
  }
  for (size_t i = 0; i < last; ++i) set(i, pairs.empty() ? merges.find(ids[i], ids[i + 1]) : pairs[i]);
  ranks[last] = kNoRank;

  // A symbol merged into the one before keeps its slot, with rank kNoRank.
  while (true) {
    size_t best = 0;
    uint32_t lowest = ranks[0];
    for (size_t i = 1; i < last; ++i) {
      const bool lower = ranks[i] < lowest;
      lowest = lower ? ranks[i] : lowest;
      best = lower ? i : best;
    }
    if (lowest == kNoRank) break;
    const size_t gone = after[best], next = after[gone];
    ids[best] = joined[best];
    ends[best] = ends[gone];
    ranks[gone] = kNoRank;
    after[best] = static_cast<uint8_t>(next);
    if (next <= last) before[next] = static_cast<uint8_t>(best);
    set(best, next <= last ? merges.find(ids[best], ids[next]) : Merge{kNoRank, -1});
    if (best > 0) set(before[best], merges.find(ids[before[best]], ids[best]));
  }
  size_t kept = 0;
  for (size_t i = 0; i <= last; i = after[i]) {
    ids[kept] = ids[i];
    ends[kept++] = ends[i];
  }
  symbols.count = kept;
}

void merge_many(const MergeTable& merges, BpeSymbols& symbols) {
  constexpr uint32_t kNone = UINT32_MAX;
  const auto count = static_cast<uint32_t>(symbols.count);
  std::vector<uint32_t> before(count), after(count), ranks(count, kNoRank);
  std::vector<int32_t> joined(count);
  // Key: rank in the high bits, position in the low bits.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> waiting;
  const auto look = [&](uint32_t i) {
    Merge merge{kNoRank, -1};
    if (after[i] != kNone) merge = merges.find(symbols.ids[i], symbols.ids[after[i]]);
    ranks[i] = merge.rank;
    joined[i] = merge.id;
    if (merge.rank != kNoRank) waiting.push(uint64_t{merge.rank} << 32 | i);
  };
  for (uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? kNone : i - 1;
    after[i] = i + 1 == count ? kNone : i + 1;
    look(i);
  }
  while (!waiting.empty()) {
    const uint64_t top = waiting.top();
    waiting.pop();
    const auto i = static_cast<uint32_t>(top);
    if (ranks[i] != top >> 32) continue;  // stale: one of the two was merged with another symbol
    const uint32_t gone = after[i];
    symbols.ids[i] = joined[i];
    symbols.ends[i] = symbols.ends[gone];
    ranks[gone] = kNoRank;
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

MergeTable::MergeTable(size_t merges) : slots_(merges + merges / 2 + 2), filter_(size_t{1} << (kFilterBits - 6)) {}

void MergeTable::add(int32_t left, int32_t right, Merge merge) {
  const uint64_t pair = key(left, right), hash = seeded_hash(pair);
  size_t i = slot_of(hash);
  while (slots_[i].pair != pair && slots_[i].pair != UINT64_MAX) i = i + 1 < slots_.size() ? i + 1 : 0;
  slots_[i] = {pair, merge};
  const uint64_t bit = hash >> (64 - kFilterBits);
  filter_[bit / 64] |= uint64_t{1} << bit % 64;
}

void merge(const MergeTable& merges, BpeSymbols& symbols, std::span<const Merge> pairs) {
  if (symbols.count < 2) return;
  symbols.count <= BpeSymbols::kFew ? merge_few(merges, symbols, pairs) : merge_many(merges, symbols);
}

}  // namespace qkv

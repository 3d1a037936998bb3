// The merge loop of byte-pair encoding: the adjacent pair with the lowest rank is merged, leftmost first, until no pair
// has a merge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/seeded_hash.h"

namespace qkv {

// Hash table from a pair of ids to its merge: linear probing, at most two thirds full. Most lookups miss; a small bit filter
// answers them without touching the large table.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank;  // kNoRank: no merge
    int32_t id;
  };
  static constexpr uint32_t kNoRank = UINT32_MAX;

  explicit MergeTable(size_t merges);
  void add(int32_t left, int32_t right, Merge merge);  // replaces an earlier merge of the pair
  Merge find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair = UINT64_MAX;
    Merge merge{kNoRank, -1};
  };
  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  size_t slot_of(uint64_t hash) const {  // where its search starts
    return static_cast<size_t>((hash & UINT32_MAX) * slots_.size() >> 32);
  }

  static constexpr int kFilterBits = 21;

  std::vector<Slot> slots_;
  std::vector<uint64_t> filter_;  // indexed by the top bits of the pair's hash
};

inline MergeTable::Merge MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t pair = key(left, right), hash = seeded_hash(pair);
  const uint64_t bit = hash >> (64 - kFilterBits);
  if ((filter_.data()[bit / 64] >> bit % 64 & 1) == 0) return {kNoRank, -1};
  const size_t size = slots_.size();
  const Slot* slots = slots_.data();
  for (size_t i = slot_of(hash);; i = i + 1 < size ? i + 1 : 0) {
    if (slots[i].pair == pair) return slots[i].merge;
    if (slots[i].pair == UINT64_MAX) return {kNoRank, -1};
  }
}

// The symbols of a piece, each with its end offset. Up to kFew are stored without allocation.
struct BpeSymbols {
  static constexpr size_t kFew = 96;  // up to this many, the best pair is found by a linear scan

  size_t count = 0;
  int32_t* ids = few_ids;
  uint32_t* ends = few_ends;

  explicit BpeSymbols(size_t most) {
    if (most <= kFew) return;
    many_ids.resize(most);
    many_ends.resize(most);
    ids = many_ids.data();
    ends = many_ends.data();
  }
  BpeSymbols(const BpeSymbols&) = delete;
  BpeSymbols& operator=(const BpeSymbols&) = delete;

  void put(int32_t id, size_t end) {
    ids[count] = id;
    ends[count++] = static_cast<uint32_t>(end);
  }

 private:
  int32_t few_ids[kFew];
  uint32_t few_ends[kFew];
  std::vector<int32_t> many_ids;
  std::vector<uint32_t> many_ends;
};

// `pairs`, optional: the merge of each symbol with the next one, if the caller already has them.
void merge(const MergeTable& merges, BpeSymbols& symbols, std::span<const MergeTable::Merge> pairs = {});

}  // namespace qkv

// Direct-mapped cache of the token ids of short pieces, one cache line per entry. Words repeat, so most lookups hit.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/hash.h"

namespace qkv {

class PieceCache {
 public:
  PieceCache() : entries_(kEntries) {}

  // The entry for this piece; null if it is too long to be cached.
  struct Entry;
  Entry* entry(std::string_view piece) {
    if (piece.size() > kBytes) return nullptr;
    return &entries_[hash_bytes(piece) & (kEntries - 1)];
  }

  static constexpr size_t kBytes = 30, kIds = 8, kEntries = size_t{1} << 15;

  struct alignas(64) Entry {
    uint8_t size = 0;  // of the piece; 0: free
    uint8_t count = 0;
    char bytes[kBytes];
    int32_t ids[kIds];

    bool holds(std::string_view piece) const {
      return size == piece.size() && std::memcmp(bytes, piece.data(), piece.size()) == 0;
    }
    void set(std::string_view piece, std::span<const int32_t> tokens) {
      if (tokens.size() > kIds) return;
      size = static_cast<uint8_t>(piece.size());
      count = static_cast<uint8_t>(tokens.size());
      std::memcpy(bytes, piece.data(), piece.size());
      std::memcpy(ids, tokens.data(), tokens.size_bytes());
    }
  };

 private:
  std::vector<Entry> entries_;
};

}  // namespace qkv

// A vocabulary: token by id and id by token. All texts in one string, ids in a flat hash table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

class Vocab {
 public:
  // Expected number of tokens and their total bytes.
  void reserve(size_t tokens, size_t bytes);

  // An id that is taken, negative or far beyond the expected number of tokens is an Error that starts with `what`.
  // Returns false if the text was there before; find() then returns the id added last.
  struct Check {
    std::string_view what;
    size_t tokens;  // expected in all
  };
  bool add(std::string_view token, int64_t id, Check check);

  // -1 if there is none.
  int32_t find(std::string_view token) const;

  // Greatest id + 1; ids below it can be missing.
  int32_t size() const { return static_cast<int32_t>(places_.size()); }
  size_t count() const { return count_; }
  size_t bytes() const { return texts_.size(); }  // of all tokens
  bool has(int32_t id) const { return id >= 0 && id < size() && places_[static_cast<size_t>(id)].size != kMissing; }
  std::string_view token(int32_t id) const {  // empty if missing
    if (!has(id)) return {};
    const Place& place = places_[static_cast<size_t>(id)];
    return std::string_view(texts_).substr(place.begin, place.size);
  }

 private:
  static constexpr uint32_t kMissing = UINT32_MAX;
  struct Place {
    uint32_t begin = 0, size = kMissing;
  };
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };

  size_t slot_of(uint64_t hash) const {  // where its search starts
    return static_cast<size_t>((hash & UINT32_MAX) * slots_.size() >> 32);
  }
  void grow();
  Slot& slot_for(std::string_view token, uint64_t hash);

  std::string texts_;
  std::vector<Place> places_;  // by id
  std::vector<Slot> slots_;    // open addressing, at most two thirds full
  size_t count_ = 0;
};

}  // namespace qkv

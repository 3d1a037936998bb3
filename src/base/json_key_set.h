// The keys of a JSON object, to find one that appears twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace qkv {

// A hash table of places in the text, because a set of strings would take more memory than the text. The hash is seeded:
// keys that collide for one would take quadratic time.
class JsonKeySet {
 public:
  explicit JsonKeySet(std::string_view document) : document_(document), slots_(64) {}

  // The key is the string whose opening quote is at `quote`. Returns false if it was there before.
  bool insert(std::string_view key, const char* quote);

  size_t longest_search() const { return longest_search_; }  // slots that one insert() looked at

 private:
  struct Slot {
    uint32_t hash = 0, end = 0;  // place of the opening quote + 1; 0: free
  };

  size_t free_or_same(uint32_t hash, const std::string_view* key);
  bool is_at(Slot slot, std::string_view key) const;
  void grow();

  std::string_view document_;
  std::vector<Slot> slots_;  // open addressing
  size_t count_ = 0, longest_search_ = 0;
};

}  // namespace qkv

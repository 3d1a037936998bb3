// A set of tokens: one bit for each id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace qkv::grammar {

class TokenSet {
 public:
  explicit TokenSet(size_t vocabulary = 0) : size_(vocabulary), words_((vocabulary + 63) / 64) {}
  size_t size() const { return size_; }
  bool has(size_t id) const { return id < size_ && (words_[id / 64] >> (id % 64) & 1) != 0; }
  void add(int32_t id) { words_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (static_cast<size_t>(id) % 64); }
  void remove(int32_t id) { words_[static_cast<size_t>(id) / 64] &= ~(uint64_t{1} << (static_cast<size_t>(id) % 64)); }
  void add(const TokenSet& other) {  // which is not larger
    for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void clear() { std::fill(words_.begin(), words_.end(), 0); }
  bool none() const {
    return std::all_of(words_.begin(), words_.end(), [](uint64_t word) { return word == 0; });
  }
  const std::vector<uint64_t>& words() const { return words_; }  // bit i of word w is the id 64 w + i
  bool operator==(const TokenSet&) const = default;

 private:
  size_t size_;
  std::vector<uint64_t> words_;
};

}  // namespace qkv::grammar

// A trie from byte strings to numbers: one descent finds every key that starts at a position of a text.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv {

class ByteTrie {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kRoot = 0;

  ByteTrie() : ByteTrie(std::vector<std::pair<std::string_view, int32_t>>{}) {}
  // Values must be >= 0. Of equal keys the last one wins; the empty key is ignored.
  explicit ByteTrie(std::vector<std::pair<std::string_view, int32_t>> keys);

  // The child node for this byte, kNone if there is none.
  uint32_t step(uint32_t node, unsigned char byte) const {
    const Node& at = nodes_[node];
    if (at.children <= 8) {
      for (uint32_t i = at.first; i < at.first + at.children; ++i) {
        if (labels_[i] == byte) return i;
      }
      return kNone;
    }
    const void* found = std::memchr(&labels_[at.first], byte, at.children);
    return found ? static_cast<uint32_t>(static_cast<const unsigned char*>(found) - labels_.data()) : kNone;
  }

  // The value of the key that ends at this node, -1 if there is none.
  int32_t value(uint32_t node) const { return nodes_[node].value; }

  // The value of this key, -1 if it is missing.
  int32_t find(std::string_view key) const;

  struct Match {
    uint32_t length = 0;  // 0: no key starts the text
    int32_t value = -1;
  };
  Match longest(std::string_view text) const;

  uint32_t longest_key() const { return longest_key_; }

 private:
  struct Node {
    uint32_t first = 0;     // child; children are contiguous
    uint32_t children = 0;  // at most 256
    int32_t value = -1;
  };

  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;  // the byte that leads to each node
  uint32_t longest_key_ = 0;
};

}  // namespace qkv

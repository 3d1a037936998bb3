// A trie from byte strings to numbers: one descent finds every key that starts at a position of a text. The rest of a
// key that no other key shares is one tail instead of a node per byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"

namespace qkv {

class ByteTrie {
 public:
  using Key = std::pair<std::string_view, int32_t>;

  ByteTrie() : ByteTrie(std::vector<Key>{}) {}
  // Values must be >= 0. Of equal keys the last one wins; the empty key is ignored.
  explicit ByteTrie(const std::vector<Key>& keys);
  ByteTrie(size_t keys, FunctionRef<Key(size_t index)> key);

  // What was read so far of some key.
  struct Place {
    uint32_t node = 0;
    uint32_t tail = 0;  // bytes of the node's tail
  };

  // Moves on by one byte; false if no key goes on with it.
  bool step(Place& at, unsigned char byte) const {
    const Node& node = nodes_[at.node];
    if (node.children <= 8) {
      for (uint32_t i = node.first; i < node.first + node.children; ++i) {
        if (labels_[i] == byte) return at = {i, 0}, true;
      }
      return false;
    }
    if ((node.children & kTail) != 0) {
      if (at.tail == tail_size(node) || static_cast<unsigned char>(tails_[node.first + at.tail]) != byte) return false;
      ++at.tail;
      return true;
    }
    const void* found = std::memchr(&labels_[node.first], byte, node.children);
    if (found == nullptr) return false;
    at = {static_cast<uint32_t>(static_cast<const unsigned char*>(found) - labels_.data()), 0};
    return true;
  }

  // The value of the key that ends here, -1 if there is none.
  int32_t value(Place at) const {
    const Node& node = nodes_[at.node];
    return at.tail == tail_size(node) ? node.value : -1;
  }

  // The value of this key, -1 if it is missing.
  int32_t find(std::string_view key) const;

  struct Match {
    uint32_t length = 0;  // 0: no key starts the text
    int32_t value = -1;
  };
  Match longest(std::string_view text) const;

 private:
  static constexpr uint32_t kTail = uint32_t{1} << 31;
  struct Node {
    uint32_t first = 0;     // child, children are contiguous; or the tail
    uint32_t children = 0;  // at most 256; or kTail and the bytes of the tail
    int32_t value = -1;     // of the key that ends here, or after the tail
  };
  static uint32_t tail_size(const Node& node) { return (node.children & kTail) != 0 ? node.children & ~kTail : 0; }

  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;  // the byte that leads to each node
  std::string tails_;
};

}  // namespace qkv

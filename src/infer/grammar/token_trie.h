// The bytes of a vocabulary's tokens as a trie, to be walked together with a grammar.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {
class Tokenizer;
}

namespace qkv::grammar {

class TokenTrie {
 public:
  // Bytes by id; empty: a token that never appears in the text (special tokens, ids without a token).
  explicit TokenTrie(std::vector<std::string> bytes);

  // Nodes in the order of a walk, children after their parent, without the root; one past the last closes the list.
  struct Node {
    uint8_t byte = 0;
    bool plain = false;       // if a character begins here, all from here down is the beginning of plain_text()
    uint16_t depth = 0;       // bytes from the root, its own included
    uint16_t characters = 0;  // most that begin from here down
    int32_t end = 0;          // the node after all of its children
    int32_t first = 0;  // tokens that end here: up to the first of the next node; below it: up to the first of `end`
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  std::span<const int32_t> tokens_at(int32_t node) const { return range(node, node + 1); }
  std::span<const int32_t> tokens_below(int32_t node) const {
    return range(node, nodes_[static_cast<size_t>(node)].end);
  }
  std::string_view path(int32_t node) const;  // the bytes from the root to it

  size_t vocabulary() const { return bytes_.size(); }
  std::string_view bytes(int32_t id) const { return bytes_[static_cast<size_t>(id)]; }
  int32_t most_opening() const { return most_opening_; }  // brackets and braces in one token

 private:
  std::span<const int32_t> range(int32_t from, int32_t to) const;

  std::vector<std::string> bytes_;
  std::vector<int32_t> order_;  // ids sorted by their bytes
  std::vector<Node> nodes_;
  int32_t most_opening_ = 0;
};

using TokenTriePtr = std::shared_ptr<const TokenTrie>;

// Of a tokenizer whose tokens can spell any JSON text; otherwise an Error.
TokenTriePtr token_trie_of(const Tokenizer& tokenizer);

}  // namespace qkv::grammar

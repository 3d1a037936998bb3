// Tokens that are found in the text itself, before any model sees it: special ones and those a user added.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "text/tokenizer/models/byte_trie.h"
#include "text/tokenizer/pipeline/normalizer.h"

namespace qkv {

struct AddedToken {
  int32_t id = -1;
  std::string content;
  bool single_word = false;  // not as a part of a word
  bool lstrip = false;       // takes the spaces before it along
  bool rstrip = false;       // and those behind it
  bool normalized = true;    // looked for in the normalized text
  bool special = false;      // left out of decoded text on request
  bool in_text = true;       // false: never found in text, it only has a role
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer);

  enum class Where { original_text, normalized_text };

  // The parts of the text in order: id of the token, or -1 for text in between. The longest token that starts leftmost
  // is found. With `specials` off, special tokens are ordinary text.
  struct Part {
    size_t begin, end;
    int32_t id;
  };
  void split(std::string_view text, Where where, bool specials, FunctionRef<void(Part)> found) const;

  const std::vector<AddedToken>& all() const { return tokens_; }
  const AddedToken* find(int32_t id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  struct Finder {
    ByteTrie trie;  // to an index in tokens_
    std::array<bool, 256> starts{};
    bool empty = true;
    void build(const std::vector<std::pair<std::string, int32_t>>& keys);
  };

  std::vector<AddedToken> tokens_;
  std::vector<std::pair<int32_t, uint32_t>> by_id_;  // sorted: id, index
  ByteTrie by_content_;
  Finder original_, normalized_;
};

}  // namespace qkv

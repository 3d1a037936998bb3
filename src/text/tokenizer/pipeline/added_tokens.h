// Added tokens: special and user-added tokens, matched in the text before the model runs.
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
  bool single_word = false;  // does not match inside a word
  bool lstrip = false;       // includes the spaces before it
  bool rstrip = false;       // includes the spaces after it
  bool normalized = true;    // matched in the normalized text
  bool special = false;      // can be skipped when decoding
  bool in_text = true;       // false: never matched, it only has a role
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer, std::string_view what);

  enum class Where { original_text, normalized_text };

  // Splits the text into added tokens (id) and the text between them (-1), in order. Leftmost, then longest match.
  // A match that `may_read` refuses is plain text, and so are its parts unless they match in their own right.
  struct Part {
    size_t begin, end;
    int32_t id;
  };
  using MayRead = FunctionRef<bool(const AddedToken& token, size_t begin, size_t end)>;
  void split(std::string_view text, Where where, MayRead may_read, FunctionRef<void(Part)> found) const;

  const std::vector<AddedToken>& all() const { return tokens_; }
  const AddedToken* find(int32_t id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  struct Finder {
    ByteTrie trie;  // values are indices into tokens_
    std::array<bool, 256> starts{};
    bool empty = true;
    void build(std::vector<ByteTrie::Key> keys);
  };

  std::vector<AddedToken> tokens_;
  std::vector<std::pair<int32_t, uint32_t>> by_id_;  // sorted: id, index
  ByteTrie by_content_;
  Finder original_, normalized_;
};

}  // namespace qkv

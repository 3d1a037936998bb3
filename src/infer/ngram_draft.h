// Speculative decoding from the text itself: proposes the tokens that followed an earlier occurrence of the last n
// tokens. A wrong guess costs time but never changes the output.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/seeded_hash.h"

namespace qkv {

struct DraftOptions {
  int64_t most = 8;                   // tokens of a guess
  int64_t longest = 4, shortest = 2;  // lengths n to look for, longest first
};

// A trie of all n-grams; each node knows where its n-gram last ended. Adding a token takes constant time.
class NgramDraft {
 public:
  explicit NgramDraft(DraftOptions options = {});

  void add(std::span<const int32_t> ids);
  // The tokens after the latest earlier occurrence; empty if there is none.
  std::vector<int32_t> propose() const;

 private:
  static constexpr int32_t kNone = -1;
  int32_t child(int32_t node, int32_t id);

  DraftOptions options_;
  std::vector<int32_t> text_;
  std::unordered_map<uint64_t, int32_t, SeededHash> children_;  // of (node, id)
  std::vector<int64_t> followed_at_;                            // by node: position after its last occurrence, or kNone
  std::vector<int32_t> suffix_;                                 // [n]: the node of the last n tokens, or kNone
};

std::vector<int32_t> draft(std::span<const int32_t> history, const DraftOptions& options);

}  // namespace qkv

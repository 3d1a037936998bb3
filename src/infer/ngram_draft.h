// A guess at what comes next, for speculation: texts repeat themselves, so what followed the last tokens when they
// stood there before may follow them again. A guess that is wrong costs time, never the right answer.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace qkv {

struct DraftOptions {
  int64_t most = 8;                   // tokens of a guess
  int64_t longest = 4, shortest = 2;  // how many of the last tokens must stand there before; the longest that do count
};

// Grows with the text and never looks at it again: every n-gram is a node of a tree, which knows where it last ended.
class NgramDraft {
 public:
  explicit NgramDraft(DraftOptions options = {});

  void add(std::span<const int32_t> ids);
  // What followed the last of the earlier places; empty if there is none.
  std::vector<int32_t> propose() const;

 private:
  static constexpr int32_t kNone = -1;
  int32_t child(int32_t node, int32_t id);

  DraftOptions options_;
  std::vector<int32_t> text_;
  std::unordered_map<uint64_t, int32_t> children_;  // of (node, id)
  std::vector<int64_t> followed_at_;                // by node: where what followed it last begins, or kNone
  std::vector<int32_t> suffix_;                     // [n]: the node of the last n tokens, or kNone
};

std::vector<int32_t> draft(std::span<const int32_t> history, const DraftOptions& options);

}  // namespace qkv

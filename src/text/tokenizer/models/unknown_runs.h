// What becomes of text that no piece covers: neighbours are one unknown token, or a token for each of their bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer/models/byte_trie.h"

namespace qkv {

// The ids of <0x00> to <0xFF>; -1: there is none.
struct ByteTokens {
  std::array<int32_t, 256> ids;
  ByteTokens() { ids.fill(-1); }
  bool cover(std::string_view run) const {
    return std::ranges::all_of(run, [&](char c) { return ids[static_cast<unsigned char>(c)] >= 0; });
  }
};

// The byte of a token written <0x00> to <0xFF>, -1 for every other text.
int byte_of_token(std::string_view token);

// Takes the pieces of a text in order and hands out ids with the byte where each ends. All tokens of a run end
// together.
class UnknownRuns {
 public:
  struct Options {
    int32_t unk_id = -1;
    const ByteTokens* bytes = nullptr;  // null: no fallback
    const ByteTrie* names = nullptr;    // where a run as a whole is looked up first; null: nowhere
  };

  UnknownRuns(std::string_view text, Options options, std::vector<int32_t>& ids, std::vector<uint32_t>& ends)
      : text_(text), options_(options), ids_(ids), ends_(ends) {}

  void take(int32_t id, uint32_t end) {
    if (id != options_.unk_id) {
      finish();
      put(id, end);
      begin_ = end;
    }
    end_ = end;
  }

  // Call after the last piece.
  void finish();

 private:
  void put(int32_t id, uint32_t end) {
    ids_.push_back(id);
    ends_.push_back(end);
  }

  std::string_view text_;
  Options options_;
  std::vector<int32_t>& ids_;
  std::vector<uint32_t>& ends_;
  uint32_t begin_ = 0, end_ = 0;  // of the run so far
};

}  // namespace qkv

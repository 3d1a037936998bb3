// Encodes runs of unknown text: one unknown token for the run, or one token per byte (byte fallback).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer/models/byte_trie.h"

namespace qkv {

// The ids of <0x00> to <0xFF>; -1: missing.
struct ByteTokens {
  std::array<int32_t, 256> ids;
  ByteTokens() { ids.fill(-1); }
  bool cover(std::string_view run) const {
    return std::ranges::all_of(run, [&](char c) { return ids[static_cast<unsigned char>(c)] >= 0; });
  }
};

// The byte of a token named <0x00> to <0xFF>, -1 for other texts.
int byte_of_token(std::string_view token);

// Takes the pieces of a text in order and appends ids with their end offsets. All tokens of an unknown run have the end
// of the run.
class UnknownRuns {
 public:
  struct Options {
    int32_t unk_id = -1;
    const ByteTokens* bytes = nullptr;  // null: no fallback
    const ByteTrie* names = nullptr;    // the whole run is looked up here first; null: not looked up
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

// Byte-pair encoding: a piece starts as single characters (or bytes). The adjacent pair with the lowest merge rank is
// merged, leftmost first, until no pair has a merge.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "text/tokenizer/models/bpe_merge.h"
#include "text/tokenizer/models/token_model.h"

namespace qkv {

struct BpeOptions {
  std::string what;         // the file, for error messages
  bool byte_level = false;  // pieces are raw bytes; the vocabulary has all 256 as letters of GPT-2's byte alphabet
  bool byte_fallback = false;
  bool fuse_unk = false;
  bool ignore_merges = false;  // a piece that is itself a token becomes that token
  std::string unk_token = {};  // empty: unknown characters are dropped
  std::string continuing_subword_prefix = {};
  std::string end_of_word_suffix = {};
};

class Bpe final : public TokenModel {
 public:
  // Merges are given one by one, because a list of them would take more memory than the file they come from.
  using TakeMerge = FunctionRef<void(std::string_view left, std::string_view right, uint32_t rank)>;
  struct Merges {
    size_t count;  // at most
    FunctionRef<void(TakeMerge)> give;
  };

  // A merge whose parts or result are not in the vocabulary is an Error.
  Bpe(Vocab vocab, Merges merges, BpeOptions options);

  void encode(std::string_view piece, PieceTokens& out) const override;
  const Vocab& vocab() const override { return vocab_; }

  // Whether the vocabulary has a token for each of the 256 bytes, as letters of GPT-2's byte alphabet.
  static bool has_all_bytes(const Vocab& vocab);

 private:
  void read_merges(Merges merges);
  void prepare_bytes();
  void split_characters(std::string_view piece, BpeSymbols& out) const;
  void encode_bytes(std::string_view piece, BpeSymbols& symbols) const;

  Vocab vocab_;
  BpeOptions options_;
  int32_t unk_id_ = -1;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_{};         // byte level: token of each byte; byte fallback: of <0x..>, or -1
  std::vector<MergeTable::Merge> byte_merges_;  // byte level: merges of two single bytes
};

}  // namespace qkv

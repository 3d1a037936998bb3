// Byte-pair encoding: a piece starts as single characters (or bytes), and of all neighbours that have a merge the pair
// with the lowest rank is joined, leftmost first, until none is left.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer/models/bpe_merge.h"
#include "text/tokenizer/models/token_model.h"

namespace qkv {

struct BpeOptions {
  std::string what;         // where the model comes from, for error texts
  bool byte_level = false;  // pieces are raw bytes; the vocabulary spells them in GPT-2's alphabet, all 256 of them
  bool byte_fallback = false;
  bool fuse_unk = false;
  bool ignore_merges = false;  // a piece that is a token is that token
  std::string unk_token = {};  // empty: unknown characters leave no trace
  std::string continuing_subword_prefix = {};
  std::string end_of_word_suffix = {};
  std::vector<uint32_t> ranks = {};  // of the merges; empty: their place in the list
};

class Bpe final : public TokenModel {
 public:
  using Merges = std::vector<std::pair<std::string_view, std::string_view>>;

  // A merge of tokens that the vocabulary does not have, or into one, is an Error.
  Bpe(Vocab vocab, const Merges& merges, BpeOptions options);

  void encode(std::string_view piece, PieceTokens& out) const override;
  const Vocab& vocab() const override { return vocab_; }

  // Whether a vocabulary has a token for each of the 256 bytes, spelled in GPT-2's alphabet.
  static bool has_all_bytes(const Vocab& vocab);

 private:
  void read_merges(const Merges& merges);
  void prepare_bytes();
  void split_characters(std::string_view piece, BpeSymbols& out) const;
  void encode_bytes(std::string_view piece, BpeSymbols& symbols) const;

  Vocab vocab_;
  BpeOptions options_;
  int32_t unk_id_ = -1;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_{};         // byte level: the token of each byte; fallback: of <0x..>, or -1
  std::vector<MergeTable::Merge> byte_merges_;  // byte level: of each two bytes
  Vocab whole_pieces_;                          // byte level with ignore_merges: tokens as the bytes they stand for
};

}  // namespace qkv

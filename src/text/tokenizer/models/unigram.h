// The Unigram model: of all ways to cut a text into pieces the one with the highest sum of scores (Viterbi).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/models/byte_trie.h"
#include "text/tokenizer/models/unknown_runs.h"

namespace qkv {

class Unigram {
 public:
  using Pieces = std::vector<std::pair<std::string, double>>;

  // The two references differ in rounding and in which pieces text can match.
  enum class Rules {
    hugging_face,   // sums in double; every piece can match
    sentencepiece,  // sums in float; only pieces with a place in the trie match
  };

  // How a piece takes part under SentencePiece's rules.
  enum class Part : uint8_t {
    normal,
    whole,  // user-defined: scored so that it is always taken
    never,  // control, unknown, unused, byte
  };

  struct Options {
    int32_t unk_id = -1;  // -1: none, and a character that no piece covers is an Error
    bool byte_fallback = false;
    Rules rules = Rules::hugging_face;
    std::vector<Part> parts = {};  // one per piece; empty: all normal
  };

  Unigram(Pieces pieces, Options options);

  // Appends the ids and, for each, the byte of the text where its piece ends. A run of unknown characters is one
  // unknown token, or with byte fallback one token per byte; those byte tokens stand for the run together, so they all
  // carry its end. Linear in the text; holds nodes for a window of it only.
  void encode(std::string_view text, std::vector<int32_t>& ids, std::vector<uint32_t>& ends) const;

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  std::string_view piece(int32_t id) const { return pieces_[static_cast<size_t>(id)].first; }
  double score(int32_t id) const { return pieces_[static_cast<size_t>(id)].second; }
  int32_t find(std::string_view piece) const { return trie_.find(piece); }  // -1: text cannot match it
  int32_t unk_id() const { return options_.unk_id; }
  bool byte_fallback() const { return options_.byte_fallback; }

 private:
  template <class Sum>
  class Search;

  void prepare_scores();

  Pieces pieces_;
  Options options_;
  std::vector<double> scores_;  // as summed
  double unk_score_ = 0;
  ByteTrie trie_;
  ByteTokens bytes_;
};

}  // namespace qkv

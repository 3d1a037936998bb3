// The Unigram model: the segmentation into pieces with the highest total score (Viterbi).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/models/byte_trie.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/vocab.h"

namespace qkv {

class Unigram {
 public:
  // Texts and scores by id. A vector of strings would take several times as much memory.
  class Pieces {
   public:
    Pieces() = default;
    Pieces(std::initializer_list<std::pair<std::string_view, double>> list) {
      for (const auto& [text, score] : list) add(text, score);
    }
    void reserve(size_t pieces, size_t bytes);
    void add(std::string_view text, double score);
    size_t size() const { return scores_.size(); }
    std::string_view text(size_t id) const { return texts_.token(static_cast<int32_t>(id)); }
    double score(size_t id) const { return scores_[id]; }
    const Vocab& vocab() const { return texts_; }
    const std::vector<double>& scores() const { return scores_; }

   private:
    Vocab texts_;
    std::vector<double> scores_;
  };

  // The two reference implementations differ in rounding and in which pieces can match.
  enum class Rules {
    hugging_face,   // double sums; every piece can match
    sentencepiece,  // float sums; what can match is given by `matching`
  };

  // How a piece matches text under SentencePiece's rules.
  enum class Matching : uint8_t {
    normal,
    always,  // user-defined: scored so that it always wins
    never,   // control, unknown, unused, byte
  };

  struct Options {
    int32_t unk_id = -1;  // -1: none; a character that no piece covers is an Error
    bool byte_fallback = false;
    Rules rules = Rules::hugging_face;
    std::vector<Matching> matching = {};  // one per piece; empty: all normal
  };

  Unigram(Pieces pieces, Options options);

  // Appends the ids and their end offsets in bytes. A run of unknown characters becomes one unknown token, or with byte
  // fallback one token per byte, all with the end of the run. Linear time; memory for a window of the text only.
  void encode(std::string_view text, std::vector<int32_t>& ids, std::vector<uint32_t>& ends) const;

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  std::string_view piece(int32_t id) const { return pieces_.text(static_cast<size_t>(id)); }
  double score(int32_t id) const { return pieces_.score(static_cast<size_t>(id)); }
  const Vocab& vocab() const { return pieces_.vocab(); }
  int32_t find(std::string_view piece) const { return trie_.find(piece); }  // -1: no piece that can match
  int32_t unk_id() const { return options_.unk_id; }
  bool byte_fallback() const { return options_.byte_fallback; }

 private:
  template <class Sum>
  class Search;

  void prepare_scores();

  Pieces pieces_;
  Options options_;
  std::vector<double> adjusted_;  // scores by SentencePiece's rules; empty: those of the pieces
  double unk_score_ = 0;
  ByteTrie trie_;
  ByteTokens bytes_;
};

}  // namespace qkv

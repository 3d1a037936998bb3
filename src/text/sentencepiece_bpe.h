// SentencePiece's BPE: neighbours whose joined text is a piece are merged, the highest score first, then the leftmost.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/byte_trie.h"
#include "text/sentencepiece_model.h"

namespace qkv {

class SentencePieceBpe {
 public:
  explicit SentencePieceBpe(const SentencePieceModel& model);

  struct Cut {
    int32_t id = -1;  // -1: not a piece
    uint32_t end = 0;
  };
  // Appends the pieces that the text becomes. User-defined pieces are found first and never merged.
  void encode(std::string_view text, const ByteTrie& user_defined, std::vector<Cut>& out) const;

 private:
  struct Symbol {
    int32_t id = -1;
    uint32_t end = 0;   // in the text
    uint32_t size = 0;  // 0: it is part of another now
    uint32_t prev = 0, next = 0;
    bool frozen = false;
  };
  struct Pair {
    float score = 0;
    uint32_t left = 0, right = 0;
    uint32_t size = 0;  // of both together when they were offered
    int32_t id = -1;
    bool operator<(const Pair& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };
  struct Halves {
    int32_t left = -1, right = -1;
    uint32_t right_size = 0;
  };
  struct Work {
    std::vector<Symbol> symbols;
    std::vector<Pair> queue;
    std::unordered_map<int32_t, Halves> halves;  // how an unused piece was offered last
  };

  void add_merges(std::string_view piece, int32_t id, const std::unordered_map<std::string_view, int32_t>& ids);
  Symbol first_symbol(std::string_view text, const ByteTrie& user_defined) const;
  bool may_merge(const Symbol& left, const Symbol& right) const;
  void merge(Work& work) const;
  void offer(Work& work, uint32_t left, uint32_t right) const;
  void hand_out(Work& work, std::vector<Cut>& out) const;
  void put(const Work& work, Cut cut, std::vector<Cut>& out) const;

  std::vector<float> scores_;  // one per piece
  std::vector<bool> unused_;
  bool has_unused_ = false;
  ByteTrie characters_;  // to ids; those behind the last piece are characters that are no piece themselves
  std::unordered_map<uint64_t, int32_t> merges_;  // left and right id to the piece they make
  std::unordered_set<uint64_t> neighbours_;       // characters that stand side by side inside some piece
};

}  // namespace qkv

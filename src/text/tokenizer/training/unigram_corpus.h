// The words of a corpus as segmentation lattices: for every character, the pieces that may start there. All of unigram
// training runs on these lattices; they shrink with the vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "text/tokenizer/training/word_counts.h"

namespace qkv {

struct UnigramSeedOptions {
  static constexpr uint32_t kLongestPiece = 16;  // characters

  size_t most = 1'000'000;  // seed pieces in addition to the characters
  uint32_t longest = kLongestPiece;
};

// Characters of all words, a space as U+2581 and invalid UTF-8 as U+FFFD: those a UnigramCorpus would have as pieces.
size_t distinct_characters(const WordCounts& counted);

class UnigramCorpus {
 public:
  static constexpr uint32_t kLongestPiece = UnigramSeedOptions::kLongestPiece;
  // Longer words are cut, so that the probability of a word of rare characters does not underflow: see kLeastScore.
  static constexpr uint32_t kLongestWord = 24;
  static constexpr double kLeastScore = -28;

  // A space becomes U+2581 and starts a word. Seed pieces: every character; every string of at most `longest`
  // characters that occurs at two positions in the distinct words; every word of that length seen twice. Of these, the
  // `most` that cover the most text.
  UnigramCorpus(const WordCounts& counted, UnigramSeedOptions options);

  size_t pieces() const { return pieces_.size(); }
  std::string text(uint32_t piece) const;
  uint32_t length(uint32_t piece) const { return pieces_[piece].length; }
  uint64_t seed_count(uint32_t piece) const { return pieces_[piece].count; }
  uint64_t stray_bytes() const { return stray_bytes_; }  // invalid UTF-8, counted as U+FFFD

  // Removes the pieces that are not marked; the others are renumbered in order.
  void keep(const std::vector<bool>& marked);

  // E step: adds the expected count of each piece over all segmentations. Returns the log-likelihood of the corpus.
  // Bitwise equal for any number of threads.
  double add_expected_counts(std::span<const double> probability, std::span<double> expected, ThreadPool& pool) const;

  // Adds the count of each piece in the best segmentations, and the total count of the words that use it.
  struct Use {
    double times = 0, words = 0;
  };
  void add_best_path_use(std::span<const double> score, std::span<Use> use, ThreadPool& pool) const;

  // The best segmentation of a piece into other pieces; empty if there is none.
  std::vector<uint32_t> best_split_of(uint32_t piece, std::span<const double> score) const;

 private:
  struct Piece {
    uint32_t place;  // one of its positions
    uint32_t length;
    uint64_t count;
  };
  struct Span {
    uint32_t begin, end;
    uint64_t count;
  };
  struct Arc {
    uint32_t place, piece;
  };

  void store_words(const WordCounts& counted);
  std::vector<Arc> character_arcs();
  std::vector<Arc> longer_arcs(std::span<const Arc> characters, uint32_t longest);
  void add_whole_words(std::vector<Arc>& arcs, uint32_t longest);
  std::vector<bool> seeds(size_t characters, size_t most) const;
  std::vector<uint32_t> renumber(const std::vector<bool>& marked);  // new ids; UINT32_MAX: removed
  void build_lattices(std::span<const Arc> arcs, std::span<const uint32_t> new_id);
  std::span<const uint32_t> starting_at(uint32_t place) const {
    return {starts_.data() + first_start_[place], starts_.data() + first_start_[place + 1]};
  }
  void best_path(Span span, std::span<const double> score, uint32_t without, std::vector<uint32_t>& path) const;
  void for_each_share(ThreadPool& pool, FunctionRef<void(size_t share, std::span<const Span> words)> body) const;

  std::vector<uint32_t> codes_;  // the characters of all words, each word ended by kEnd
  std::vector<Span> words_;
  std::vector<Piece> pieces_;
  std::vector<uint32_t> first_start_, starts_;  // pieces that start at each position, short ones first
  uint64_t stray_bytes_ = 0;
};

}  // namespace qkv

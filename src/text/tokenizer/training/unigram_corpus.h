// The words of a corpus as lattices: at every character the pieces that may start there. Unigram training looks at
// nothing else, and as the vocabulary shrinks, the lattices thin out.
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
  size_t most = 1'000'000;  // seed pieces beside the characters
};

class UnigramCorpus {
 public:
  static constexpr uint32_t kLongestPiece = 16;  // characters
  // Longer words are cut. Then the probability of a word is a double however rare its characters are: see kLeastScore.
  static constexpr uint32_t kLongestWord = 24;
  static constexpr double kLeastScore = -28;

  // A space becomes U+2581 and starts a word. The pieces are every single character, every string of at most
  // kLongestPiece characters that stands in two places of the distinct words, and every such word that occurs twice;
  // of these, those that cover most text.
  UnigramCorpus(const WordCounts& counted, UnigramSeedOptions options);

  size_t pieces() const { return pieces_.size(); }
  std::string text(uint32_t piece) const;
  uint32_t length(uint32_t piece) const { return pieces_[piece].length; }
  uint64_t seed_count(uint32_t piece) const { return pieces_[piece].count; }
  uint64_t stray_bytes() const { return stray_bytes_; }  // that were no UTF-8 and became U+FFFD

  // Leaves out the pieces that are not marked; the others are renumbered in order.
  void keep(const std::vector<bool>& marked);

  // Adds to `expected` how often each piece is used, every segmentation weighted by its probability. Returns the
  // logarithm of the corpus' probability. The same bits for any number of threads.
  double expect(std::span<const double> probability, std::span<double> expected, ThreadPool& pool) const;

  // Adds how often each piece is used in the best segmentations, and in words of what total count it is used.
  struct Use {
    double times = 0, words = 0;
  };
  void best_use(std::span<const double> score, std::span<Use> use, ThreadPool& pool) const;

  // The best way to write a piece with other pieces; empty if there is none.
  std::vector<uint32_t> best_without(uint32_t piece, std::span<const double> score) const;

 private:
  struct Piece {
    uint32_t place;  // where it stands once
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

  void lay_out(const WordCounts& counted);
  std::vector<Arc> character_arcs();
  std::vector<Arc> longer_arcs(std::span<const Arc> characters);
  void add_whole_words(std::vector<Arc>& arcs);
  std::vector<bool> seeds(size_t characters, size_t most) const;
  std::vector<uint32_t> renumber(const std::vector<bool>& marked);  // UINT32_MAX for those that go
  void build_lattices(std::span<const Arc> arcs, std::span<const uint32_t> new_id);
  std::span<const uint32_t> starting_at(uint32_t place) const {
    return {starts_.data() + first_start_[place], starts_.data() + first_start_[place + 1]};
  }
  void best_path(Span span, std::span<const double> score, uint32_t without, std::vector<uint32_t>& path) const;
  void each_share(ThreadPool& pool, FunctionRef<void(size_t share, std::span<const Span> words)> body) const;

  std::vector<uint32_t> codes_;  // the characters of all words, each word ended by kEnd
  std::vector<Span> words_;
  std::vector<Piece> pieces_;
  std::vector<uint32_t> first_start_, starts_;  // pieces that start at each place, short ones first
  uint64_t stray_bytes_ = 0;
};

}  // namespace qkv

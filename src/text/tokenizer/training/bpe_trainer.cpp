// All distinct words are stored in one array, one symbol per byte, with a boundary between words. A token of several
// bytes is stored at its first and its last byte, so both neighbours of a token are found in O(1) and a merge writes
// four positions. When a token is created, all positions of every pair it is part of are known: each pair becomes one
// heap entry (Candidate) with its positions, and is never looked up again. Counts only decrease, so an old count is an
// upper bound; a candidate is recounted when it reaches the top of the heap.
#include "text/tokenizer/training/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <span>

#include "base/checked.h"
#include "base/error.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr uint32_t kBoundary = UINT32_MAX;    // between words
constexpr uint32_t kInside = UINT32_MAX - 1;  // inner byte of a token: neither first nor last
constexpr uint32_t kBytes = 256;

// Allocator for position lists: short ones live until the end, long ones are freed when given back.
class Places {
 public:
  uint32_t* take(size_t size) {
    if (size >= kLong) return new uint32_t[size];
    if (size > left_) {
      blocks_.push_back(std::make_unique_for_overwrite<uint32_t[]>(kBlock));
      left_ = kBlock;
    }
    return blocks_.back().get() + (left_ -= size);
  }
  static void give_back(const uint32_t* places, size_t size) {
    if (size >= kLong) delete[] places;
  }

 private:
  static constexpr size_t kLong = 1024, kBlock = size_t{1} << 18;
  std::vector<std::unique_ptr<uint32_t[]>> blocks_;
  size_t left_ = 0;
};

struct Candidate {
  uint64_t count;  // upper bound of the current count
  uint32_t left, right;
  uint32_t* places;  // positions of the first byte of `left`, ascending
  uint32_t size, capacity;
};

class BpeTrainer {
 public:
  BpeTrainer(WordCounts words, const BpeTrainerOptions& options) : options_(options) {
    for (uint32_t byte = 0; byte < kBytes; ++byte) tokens_.emplace_back(1, static_cast<char>(byte));
    store_words(std::move(words));
    first_candidates();
  }

  ~BpeTrainer() {
    for (const Candidate& c : heap_) Places::give_back(c.places, c.capacity);
  }
  BpeTrainer(const BpeTrainer&) = delete;
  BpeTrainer& operator=(const BpeTrainer&) = delete;

  std::vector<std::pair<uint32_t, uint32_t>> run(size_t merges) {
    std::vector<std::pair<uint32_t, uint32_t>> made;
    while (made.size() < merges && !heap_.empty()) {
      Candidate best = pop();
      count_again(best);
      if (best.count != 0 && !heap_.empty() && less(best, heap_.front())) {
        push(best);
        continue;
      }
      if (best.count != 0) {
        made.emplace_back(best.left, best.right);
        merge(best);
        if (options_.on_merge) options_.on_merge(made.size());
      }
      Places::give_back(best.places, best.capacity);
    }
    return made;
  }

 private:
  // Words are sorted by descending count; a run is a range of words of equal count, so a position gives the count.
  struct Run {
    uint32_t end;
    uint64_t count;
  };

  void store_words(WordCounts counted) {
    std::vector<Word> words = counted.words();
    std::erase_if(words, [](const Word& word) { return word.text.size() < 2; });
    std::stable_sort(words.begin(), words.end(), [](const Word& a, const Word& b) { return a.count > b.count; });
    const size_t size = std::accumulate(words.begin(), words.end(), size_t{1},
                                        [](size_t sum, const Word& word) { return sum + word.text.size() + 1; });
    QKV_CHECK(size < kInside, "the distinct words of the corpus have ", size, " bytes but at most ", kInside,
              " can be trained on", Hint("train on a part of the corpus"));
    symbols_.reserve(size);
    symbols_.push_back(kBoundary);
    CheckedU64 bytes(0, "the number of bytes in all words");  // no pair is more frequent
    for (const Word& word : words) {
      bytes = bytes + CheckedU64(word.count, bytes.what()) * word.text.size();
      if (runs_.empty() || runs_.back().count != word.count) runs_.push_back({0, word.count});
      for (const char byte : word.text) symbols_.push_back(static_cast<unsigned char>(byte));
      symbols_.push_back(kBoundary);
      runs_.back().end = static_cast<uint32_t>(symbols_.size());
    }
  }

  // For ascending positions: `run` is the run of the previous position, initially 0.
  uint64_t count_at(uint32_t place, size_t& run) const {
    if (place >= runs_[run].end) {
      const auto at = std::upper_bound(runs_.begin() + static_cast<ptrdiff_t>(run), runs_.end(), place,
                                       [](uint32_t p, const Run& r) { return p < r.end; });
      run = static_cast<size_t>(at - runs_.begin());
    }
    return runs_[run].count;
  }

  uint32_t bytes_of(uint32_t symbol) const { return static_cast<uint32_t>(tokens_[symbol].size()); }

  bool less(const Candidate& a, const Candidate& b) const {
    if (a.count != b.count) return a.count < b.count;
    const int left = tokens_[a.left].compare(tokens_[b.left]);
    return left != 0 ? left < 0 : tokens_[a.right] < tokens_[b.right];
  }

  bool allowed(const std::string& left, const std::string& right) const {
    if (options_.max_token_length == 0) return true;
    const std::string token = left + right;
    const bool in_one = std::all_of(token.begin() + 1, token.end(), is_utf8_continuation);
    return token.size() <= options_.max_token_length && (in_one || is_utf8(token));
  }

  // A pair that would make a token that is not allowed is never a candidate.
  void push(const Candidate& candidate) {
    if (!allowed(tokens_[candidate.left], tokens_[candidate.right])) {
      return Places::give_back(candidate.places, candidate.capacity);
    }
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end(), [this](const auto& a, const auto& b) { return less(a, b); });
  }

  Candidate pop() {
    std::pop_heap(heap_.begin(), heap_.end(), [this](const auto& a, const auto& b) { return less(a, b); });
    const Candidate best = heap_.back();
    heap_.pop_back();
    return best;
  }

  void first_candidates() {
    std::vector<Tally> tallies(size_t{kBytes} * kBytes);
    const auto each_pair = [&](auto visit) {
      size_t run = 0;
      for (uint32_t place = 1; place + 1 < symbols_.size(); ++place) {
        if (symbols_[place] == kBoundary || symbols_[place + 1] == kBoundary) continue;
        visit(tallies[symbols_[place] * kBytes + symbols_[place + 1]], place, run);
      }
    };
    each_pair([&](Tally& tally, uint32_t place, size_t& run) {
      tally.count += count_at(place, run);
      ++tally.size;
    });
    for (Tally& tally : tallies) {
      if (tally.size != 0) tally.places = places_.take(tally.size);
    }
    each_pair([](Tally& tally, uint32_t place, size_t&) { tally.places[tally.filled++] = place; });
    for (uint32_t pair = 0; pair < tallies.size(); ++pair) {
      const Tally& t = tallies[pair];
      if (t.size != 0) push({t.count, pair / kBytes, pair % kBytes, t.places, t.size, t.size});
    }
  }

  void count_again(Candidate& c) const {
    const uint32_t step = bytes_of(c.left);
    uint32_t kept = 0;
    uint64_t count = 0;
    size_t run = 0;
    for (uint32_t i = 0; i < c.size; ++i) {
      __builtin_prefetch(&symbols_[c.places[std::min(i + kAhead, c.size - 1)]]);
      const uint32_t place = c.places[i];
      if (symbols_[place] != c.left || symbols_[place + step] != c.right) continue;
      c.places[kept++] = place;
      count += count_at(place, run);
    }
    c.size = kept;
    c.count = count;
  }

  // One pair while its positions are collected.
  struct Tally {
    uint64_t count = 0;
    uint32_t size = 0, filled = 0;
    uint32_t* places = nullptr;
  };

  // The pairs (other, token) or (token, other), by the other symbol.
  struct Side {
    std::vector<Tally> tallies;  // by symbol
    std::vector<uint32_t> met;   // symbols with a tally

    void add(uint32_t symbol, uint64_t count) {
      Tally& tally = tallies[symbol];
      if (tally.size++ == 0) met.push_back(symbol);
      tally.count += count;
    }
  };

  void merge(const Candidate& pair) {
    const auto token = static_cast<uint32_t>(tokens_.size());
    tokens_.push_back(tokens_[pair.left] + tokens_[pair.right]);
    const uint32_t first = bytes_of(pair.left), bytes = bytes_of(token);

    // Of two overlapping occurrences the earlier one is merged.
    uint32_t merged = 0;
    for (uint32_t i = 0; i < pair.size; ++i) {
      const uint32_t place = pair.places[i];
      if (symbols_[place] != pair.left || symbols_[place + first] != pair.right) continue;
      symbols_[place + first - 1] = symbols_[place + first] = kInside;
      symbols_[place] = symbols_[place + bytes - 1] = token;
      pair.places[merged++] = place;
    }
    make_candidates({pair.places, merged}, token);
  }

  void make_candidates(std::span<const uint32_t> merged, uint32_t token) {
    const uint32_t bytes = bytes_of(token);
    before_.tallies.resize(tokens_.size());
    after_.tallies.resize(tokens_.size());
    // A pair (token, token) is reported once, through its second token.
    const auto each_pair = [&](auto on_before, auto on_after) {
      for (const uint32_t place : merged) {
        const uint32_t before = symbols_[place - 1], after = symbols_[place + bytes];
        if (before != kBoundary) on_before(before, place - bytes_of(before));
        if (after != kBoundary && after != token) on_after(after, place);
      }
    };
    size_t run = 0;
    each_pair([&](uint32_t symbol, uint32_t place) { before_.add(symbol, count_at(place, run)); },
              [&](uint32_t symbol, uint32_t place) { after_.add(symbol, count_at(place, run)); });
    for (Side* side : {&before_, &after_}) {
      for (const uint32_t symbol : side->met) side->tallies[symbol].places = places_.take(side->tallies[symbol].size);
    }
    const auto fill = [](Tally& tally, uint32_t place) { tally.places[tally.filled++] = place; };
    each_pair([&](uint32_t symbol, uint32_t place) { fill(before_.tallies[symbol], place); },
              [&](uint32_t symbol, uint32_t place) { fill(after_.tallies[symbol], place); });
    for (Side* side : {&before_, &after_}) {
      for (const uint32_t symbol : side->met) {
        const Tally t = std::exchange(side->tallies[symbol], {});
        const bool is_before = side == &before_;
        push({t.count, is_before ? symbol : token, is_before ? token : symbol, t.places, t.size, t.size});
      }
      side->met.clear();
    }
  }

  static constexpr uint32_t kAhead = 16;

  const BpeTrainerOptions& options_;
  std::vector<std::string> tokens_;  // 256 bytes, then the merges
  std::vector<uint32_t> symbols_;
  std::vector<Run> runs_;
  Places places_;
  std::vector<Candidate> heap_;
  Side before_, after_;
};

// Bytes sorted by their letters; UTF-8 sorts like code points.
std::array<uint8_t, kBytes> bytes_in_order() {
  std::array<uint8_t, kBytes> bytes{};
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  std::sort(bytes.begin(), bytes.end(), [](uint8_t a, uint8_t b) { return byte_letter(a) < byte_letter(b); });
  return bytes;
}

}  // namespace

BpeModel train_bpe(WordCounts words, const BpeTrainerOptions& options) {
  const size_t specials = options.specials.size();
  QKV_CHECK(options.vocab >= specials + kBytes, "a vocabulary of ", options.vocab, " tokens cannot hold ", specials,
            " special tokens and the 256 bytes", Hint("ask for at least ", specials + kBytes));
  QKV_CHECK(options.vocab < kInside / 2, "a vocabulary of ", options.vocab, " tokens is too large",
            Hint("ask for fewer"));
  BpeTrainer trainer(std::move(words), options);
  const auto merges = trainer.run(options.vocab - specials - kBytes);

  BpeModel model{.specials = specials, .tokens = options.specials};
  std::array<uint32_t, kBytes> id_of_byte{};
  for (const uint8_t byte : bytes_in_order()) {
    id_of_byte[byte] = static_cast<uint32_t>(model.tokens.size());
    model.tokens.emplace_back(1, static_cast<char>(byte));
  }
  const auto id_of = [&](uint32_t symbol) {
    return symbol < kBytes ? id_of_byte[symbol] : symbol + static_cast<uint32_t>(specials);
  };
  for (const auto& [left, right] : merges) {
    model.merges.emplace_back(id_of(left), id_of(right));
    model.tokens.push_back(model.tokens[id_of(left)] + model.tokens[id_of(right)]);
  }
  return model;
}

}  // namespace qkv

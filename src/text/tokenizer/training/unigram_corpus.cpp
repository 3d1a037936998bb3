#include "text/tokenizer/training/unigram_corpus.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "text/tokenizer/hash.h"
#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr uint32_t kEnd = UINT32_MAX, kNoPiece = UINT32_MAX;
constexpr std::string_view kSpaceMark = "\u2581";
// Sums are split into this many shares of the words, independent of the number of threads.
constexpr size_t kShares = 8;

// Flat hash table from a pair of adjacent strings to the statistics of their concatenation.
class PairTable {
 public:
  struct Entry {
    uint64_t key = UINT64_MAX;
    uint64_t count = 0;
    uint32_t places = 0, place = 0, piece = kNoPiece;
  };

  Entry& at(uint64_t key) {
    if (used_ * 3 >= entries_.size() * 2) grow();
    Entry& entry = find(key);
    if (entry.key == UINT64_MAX) {
      entry.key = key;
      ++used_;
    }
    return entry;
  }

 private:
  Entry& find(uint64_t key) {
    const size_t mask = entries_.size() - 1;
    size_t slot = hash_number(key) & mask;
    while (entries_[slot].key != UINT64_MAX && entries_[slot].key != key) slot = (slot + 1) & mask;
    return entries_[slot];
  }
  void grow() {
    std::vector<Entry> old(std::max<size_t>(1024, entries_.size() * 2));
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.key != UINT64_MAX) find(entry.key) = entry;
    }
  }

  std::vector<Entry> entries_;
  size_t used_ = 0;
};

}  // namespace

size_t distinct_characters(const WordCounts& counted) {
  constexpr uint32_t kCodes = 0x110000, kSpaceMarkCode = 0x2581, kReplacementCode = 0xFFFD;
  const CharKinds& kinds = CharKinds::table();
  std::vector<bool> seen(kCodes);
  for (const Word& word : counted.words()) {
    const auto* p = reinterpret_cast<const unsigned char*>(word.text.data());
    for (const auto* const end = p + word.text.size(); p != end;) {
      const Char c = kinds.at(p, end);
      seen[is_stray_byte(c) ? kReplacementCode : c.code == ' ' ? kSpaceMarkCode : c.code] = true;
      p += c.bytes;
    }
  }
  return static_cast<size_t>(std::count(seen.begin(), seen.end(), true));
}

UnigramCorpus::UnigramCorpus(const WordCounts& counted, UnigramSeedOptions options) {
  store_words(counted);
  std::vector<Arc> arcs = character_arcs();
  const size_t characters = pieces_.size();
  const std::vector<Arc> longer = longer_arcs(arcs, options.longest);
  arcs.insert(arcs.end(), longer.begin(), longer.end());
  add_whole_words(arcs, options.longest);

  build_lattices(arcs, renumber(seeds(characters, options.most)));
}

void UnigramCorpus::store_words(const WordCounts& counted) {
  const CharKinds& kinds = CharKinds::table();
  WordCounts prepared;
  std::string word;
  for (const Word& raw : counted.words()) {
    const auto* p = reinterpret_cast<const unsigned char*>(raw.text.data());
    const auto* const end = p + raw.text.size();
    uint32_t length = 0;
    const auto finish = [&] {
      if (!word.empty()) prepared.add(word, raw.count);
      word.clear();
      length = 0;
    };
    while (p != end) {
      const Char c = kinds.at(p, end);
      p += c.bytes;
      if (c.code == ' ' || length == kLongestWord) finish();
      if (is_stray_byte(c)) {
        stray_bytes_ += raw.count;
        word += kReplacementCharacter;
      } else {
        word += c.code == ' ' ? kSpaceMark : std::string_view(reinterpret_cast<const char*>(p - c.bytes), c.bytes);
      }
      ++length;
    }
    finish();
  }

  std::vector<Word> words = prepared.words();
  std::sort(words.begin(), words.end(), [](const Word& a, const Word& b) { return a.text < b.text; });
  CheckedU64 bytes(0, "the number of bytes in all words");  // no piece is more frequent
  for (const Word& w : words) {
    bytes = bytes + CheckedU64(w.count, bytes.what()) * w.text.size();
    const auto* p = reinterpret_cast<const unsigned char*>(w.text.data());
    const auto* const end = p + w.text.size();
    const size_t begin = codes_.size();
    while (p != end) {
      const Char c = kinds.at(p, end);
      codes_.push_back(c.code);
      p += c.bytes;
    }
    QKV_CHECK(codes_.size() < kNoPiece - 1, "the distinct words of the corpus have more than ", kNoPiece - 1,
              " characters", Hint("train on a part of the corpus"));
    words_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(codes_.size()), w.count});
    codes_.push_back(kEnd);
  }
}

std::vector<UnigramCorpus::Arc> UnigramCorpus::character_arcs() {
  std::vector<uint32_t> alphabet = codes_;
  std::sort(alphabet.begin(), alphabet.end());
  alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
  if (!alphabet.empty()) alphabet.pop_back();  // kEnd
  pieces_.assign(alphabet.size(), {kNoPiece, 1, 0});
  std::vector<Arc> arcs;
  arcs.reserve(codes_.size());
  for (const Span& word : words_) {
    for (uint32_t place = word.begin; place < word.end; ++place) {
      const auto at = std::lower_bound(alphabet.begin(), alphabet.end(), codes_[place]);
      const auto piece = static_cast<uint32_t>(at - alphabet.begin());
      pieces_[piece].place = std::min(pieces_[piece].place, place);
      pieces_[piece].count += word.count;
      arcs.push_back({place, piece});
    }
  }
  return arcs;
}

// Length by length: a string can occur twice only if it also does so without its first and without its last character.
std::vector<UnigramCorpus::Arc> UnigramCorpus::longer_arcs(std::span<const Arc> characters, uint32_t longest) {
  std::vector<Arc> arcs;
  std::vector<uint32_t> piece_at(codes_.size() + 1, kNoPiece);  // of the previous length
  for (const Arc& arc : characters) piece_at[arc.place] = arc.piece;
  for (uint32_t length = 2; length <= longest; ++length) {
    PairTable table;
    const auto key_at = [&](uint32_t place) { return uint64_t{piece_at[place]} << 32 | piece_at[place + 1]; };
    const auto each_place = [&](auto visit) {
      for (const Span& word : words_) {
        for (uint32_t place = word.begin; place + length <= word.end; ++place) {
          if (piece_at[place] != kNoPiece && piece_at[place + 1] != kNoPiece) visit(place, word.count);
        }
      }
    };
    each_place([&](uint32_t place, uint64_t count) {
      PairTable::Entry& entry = table.at(key_at(place));
      if (entry.places++ == 0) entry.place = place;
      entry.count += count;
    });
    const size_t before = arcs.size();
    each_place([&](uint32_t place, uint64_t) {
      PairTable::Entry& entry = table.at(key_at(place));
      if (entry.places < 2) return;
      if (entry.piece == kNoPiece) {
        entry.piece = static_cast<uint32_t>(pieces_.size());
        pieces_.push_back({entry.place, length, entry.count});
      }
      arcs.push_back({place, entry.piece});
    });
    if (arcs.size() == before) break;
    std::fill(piece_at.begin(), piece_at.end(), kNoPiece);
    for (size_t i = before; i < arcs.size(); ++i) piece_at[arcs[i].place] = arcs[i].piece;
  }
  return arcs;
}

void UnigramCorpus::add_whole_words(std::vector<Arc>& arcs, uint32_t longest) {
  std::vector<bool> known(codes_.size());  // a piece equal to the whole word starts here
  std::vector<uint32_t> word_length(codes_.size());
  for (const Span& word : words_) word_length[word.begin] = word.end - word.begin;
  for (const Arc& arc : arcs) {
    if (pieces_[arc.piece].length == word_length[arc.place]) known[arc.place] = true;
  }
  for (const Span& word : words_) {
    const uint32_t length = word.end - word.begin;
    if (known[word.begin] || length > longest || word.count < 2) continue;
    arcs.push_back({word.begin, static_cast<uint32_t>(pieces_.size())});
    pieces_.push_back({word.begin, length, word.count});
  }
}

std::vector<bool> UnigramCorpus::seeds(size_t characters, size_t most) const {
  std::vector<uint32_t> order(pieces_.size() - characters);
  std::iota(order.begin(), order.end(), static_cast<uint32_t>(characters));
  const auto covers = [&](uint32_t piece) { return static_cast<double>(pieces_[piece].count) * pieces_[piece].length; };
  const size_t kept = std::min(most, order.size());
  std::nth_element(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), order.end(),
                   [&](uint32_t a, uint32_t b) { return covers(a) != covers(b) ? covers(a) > covers(b) : a < b; });
  std::vector<bool> marked(pieces_.size());
  std::fill_n(marked.begin(), characters, true);
  for (size_t i = 0; i < kept; ++i) marked[order[i]] = true;
  return marked;
}

void UnigramCorpus::build_lattices(std::span<const Arc> arcs, std::span<const uint32_t> new_id) {
  first_start_.assign(codes_.size() + 1, 0);
  for (const Arc& arc : arcs) {
    if (new_id[arc.piece] != kNoPiece) ++first_start_[arc.place + 1];
  }
  std::partial_sum(first_start_.begin(), first_start_.end(), first_start_.begin());
  starts_.resize(first_start_.back());
  std::vector<uint32_t> next(first_start_.begin(), first_start_.end() - 1);
  // Arcs are sorted by length, so each position lists its short pieces first.
  for (const Arc& arc : arcs) {
    if (new_id[arc.piece] != kNoPiece) starts_[next[arc.place]++] = new_id[arc.piece];
  }
}

std::string UnigramCorpus::text(uint32_t piece) const {
  std::string text;
  for (uint32_t i = 0; i < pieces_[piece].length; ++i) text += utf8_of(codes_[pieces_[piece].place + i]);
  return text;
}

std::vector<uint32_t> UnigramCorpus::renumber(const std::vector<bool>& marked) {
  std::vector<uint32_t> new_id(pieces_.size(), kNoPiece);
  uint32_t next = 0;
  for (uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    if (!marked[piece]) continue;
    pieces_[next] = pieces_[piece];
    new_id[piece] = next++;
  }
  pieces_.resize(next);
  return new_id;
}

void UnigramCorpus::keep(const std::vector<bool>& marked) {
  const std::vector<uint32_t> new_id = renumber(marked);
  uint32_t kept = 0, begin = 0;
  for (size_t place = 0; place + 1 < first_start_.size(); ++place) {
    const uint32_t end = first_start_[place + 1];
    for (uint32_t i = begin; i < end; ++i) {
      if (new_id[starts_[i]] != kNoPiece) starts_[kept++] = new_id[starts_[i]];
    }
    begin = end;
    first_start_[place + 1] = kept;
  }
  starts_.resize(kept);
}

void UnigramCorpus::for_each_share(ThreadPool& pool,
                                   FunctionRef<void(size_t share, std::span<const Span> words)> body) const {
  pool.run(static_cast<int64_t>(kShares), [&](int64_t task, int) {
    const auto share = static_cast<size_t>(task);
    const size_t begin = words_.size() * share / kShares, end = words_.size() * (share + 1) / kShares;
    body(share, std::span(words_).subspan(begin, end - begin));
  });
}

double UnigramCorpus::add_expected_counts(std::span<const double> probability, std::span<double> expected,
                                          ThreadPool& pool) const {
  std::array<std::vector<double>, kShares> sums;
  std::array<double, kShares> logs{};
  for_each_share(pool, [&](size_t share, std::span<const Span> words) {
    std::vector<double>& sum = sums[share];
    sum.resize(pieces_.size());
    std::array<double, kLongestWord + 1> after{}, before{};  // probability of the suffix, of the prefix
    for (const Span& word : words) {
      const uint32_t length = word.end - word.begin;
      after[length] = 1;
      for (uint32_t i = length; i-- > 0;) {
        double total = 0;
        for (const uint32_t piece : starting_at(word.begin + i)) {
          total += probability[piece] * after[i + pieces_[piece].length];
        }
        after[i] = total;
      }
      const auto count = static_cast<double>(word.count);
      logs[share] += count * std::log(after[0]);
      before.fill(0);
      before[0] = count / after[0];
      for (uint32_t i = 0; i < length; ++i) {
        for (const uint32_t piece : starting_at(word.begin + i)) {
          const uint32_t end = i + pieces_[piece].length;
          const double through = before[i] * probability[piece];
          before[end] += through;
          sum[piece] += through * after[end];
        }
      }
    }
  });
  for (const std::vector<double>& sum : sums) {
    for (size_t piece = 0; piece < expected.size(); ++piece) expected[piece] += sum[piece];
  }
  return std::accumulate(logs.begin(), logs.end(), 0.0);
}

// Of equally good paths, the one with the longer last piece.
void UnigramCorpus::best_path(Span span, std::span<const double> score, uint32_t without,
                              std::vector<uint32_t>& path) const {
  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    uint32_t piece = kNoPiece;
  };
  std::array<Best, kLongestWord + 1> best;
  const uint32_t length = span.end - span.begin;
  best[0].score = 0;
  for (uint32_t i = 0; i < length; ++i) {
    for (const uint32_t piece : starting_at(span.begin + i)) {
      const uint32_t end = i + pieces_[piece].length;
      if (end > length || piece == without) continue;
      const double total = best[i].score + score[piece];
      if (total > best[end].score) best[end] = {total, piece};
    }
  }
  path.clear();
  for (uint32_t end = length; end > 0 && best[end].piece != kNoPiece; end -= pieces_[best[end].piece].length) {
    path.push_back(best[end].piece);
  }
}

void UnigramCorpus::add_best_path_use(std::span<const double> score, std::span<Use> use, ThreadPool& pool) const {
  std::array<std::vector<Use>, kShares> sums;
  for_each_share(pool, [&](size_t share, std::span<const Span> words) {
    std::vector<Use>& sum = sums[share];
    sum.resize(pieces_.size());
    std::vector<uint32_t> path;
    for (const Span& word : words) {
      best_path(word, score, kNoPiece, path);
      const auto count = static_cast<double>(word.count);
      for (size_t i = 0; i < path.size(); ++i) {
        sum[path[i]].times += count;
        const auto end = path.begin() + static_cast<ptrdiff_t>(i);
        if (std::find(path.begin(), end, path[i]) == end) sum[path[i]].words += count;
      }
    }
  });
  for (const std::vector<Use>& sum : sums) {
    for (size_t piece = 0; piece < use.size(); ++piece) {
      use[piece].times += sum[piece].times;
      use[piece].words += sum[piece].words;
    }
  }
}

std::vector<uint32_t> UnigramCorpus::best_split_of(uint32_t piece, std::span<const double> score) const {
  const Piece& p = pieces_[piece];
  std::vector<uint32_t> path;
  best_path({p.place, p.place + p.length, 0}, score, piece, path);
  return path;
}

}  // namespace qkv

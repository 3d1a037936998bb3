#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "base/error.h"
#include "base/printable.h"
#include "text/byte_alphabet.h"
#include "text/characters.h"
#include "text/hash.h"

namespace qkv {
namespace {

constexpr size_t kFew = 96;                // up to so many symbols the best pair is found by looking at all of them
constexpr size_t kLongestPiece = 1 << 26;  // bounds the memory: a symbol takes about 40 bytes

}  // namespace

MergeTable::MergeTable(size_t merges) : slots_(std::bit_ceil(std::max<size_t>(2 * merges, 2))) {}

void MergeTable::add(int32_t left, int32_t right, Merge merge) {
  const uint64_t pair = key(left, right);
  const size_t mask = slots_.size() - 1;
  size_t i = hash_number(pair) & mask;
  while (slots_[i].pair != pair && slots_[i].pair != UINT64_MAX) i = (i + 1) & mask;
  slots_[i] = {pair, merge};
}

inline MergeTable::Merge MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t pair = key(left, right);
  const size_t mask = slots_.size() - 1;
  const Slot* slots = slots_.data();
  for (size_t i = hash_number(pair) & mask;; i = (i + 1) & mask) {
    if (slots[i].pair == pair) return slots[i].merge;
    if (slots[i].pair == UINT64_MAX) return {kNoRank, -1};
  }
}

// The piece as it stands between two merges. Few symbols live on the stack.
struct Bpe::Symbols {
  size_t count = 0;
  int32_t* ids = few_ids;
  uint32_t* ends = few_ends;

  explicit Symbols(size_t most) {
    if (most <= kFew) return;
    many_ids.resize(most);
    many_ends.resize(most);
    ids = many_ids.data();
    ends = many_ends.data();
  }
  void put(int32_t id, size_t end) {
    ids[count] = id;
    ends[count++] = static_cast<uint32_t>(end);
  }

 private:
  int32_t few_ids[kFew];
  uint32_t few_ends[kFew];
  std::vector<int32_t> many_ids;
  std::vector<uint32_t> many_ends;
};

Bpe::Bpe(Vocab vocab, const Merges& merges, BpeOptions options)
    : vocab_(std::move(vocab)), options_(std::move(options)), merges_(merges.size()) {
  if (!options_.unk_token.empty()) {
    unk_id_ = vocab_.find(options_.unk_token);
    QKV_CHECK(unk_id_ >= 0, options_.what, ": the unknown token ", printable(options_.unk_token),
              " is not in the vocabulary", Hint("add it to the vocabulary or set unk_token to null"));
  }
  read_merges(merges);
  prepare_bytes();
}

bool Bpe::has_all_bytes(const Vocab& vocab) {
  for (int byte = 0; byte < 256; ++byte) {
    if (vocab.find(byte_letter(static_cast<unsigned char>(byte))) < 0) return false;
  }
  return true;
}

void Bpe::read_merges(const Merges& merges) {
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto id_of = [&](std::string_view token) {
      const int32_t id = vocab_.find(token);
      QKV_CHECK(id >= 0, options_.what, ": merge ", rank, " joins ", printable(left), " and ", printable(right),
                " but ", printable(token), " is not in the vocabulary",
                Hint("vocabulary and merges must be of one tokenizer"));
      return id;
    };
    const int32_t left_id = id_of(left), right_id = id_of(right);
    const size_t prefix = options_.continuing_subword_prefix.size();
    QKV_CHECK(right.size() >= prefix, options_.what, ": merge ", rank, " has ", printable(right),
              " on the right, which is shorter than the prefix ", printable(options_.continuing_subword_prefix),
              Hint("vocabulary and merges must be of one tokenizer"));
    joined.assign(left);
    joined += right.substr(prefix);
    merges_.add(left_id, right_id, {static_cast<uint32_t>(rank), id_of(joined)});
  }
}

void Bpe::prepare_bytes() {
  for (size_t byte = 0; byte < 256; ++byte) {
    byte_ids_[byte] = options_.byte_level ? vocab_.find(byte_letter(static_cast<unsigned char>(byte)))
                                          : vocab_.find(fmt::format("<0x{:02X}>", byte));
  }
  if (!options_.byte_level) return;
  byte_merges_.reserve(256 * 256);
  for (const int32_t left : byte_ids_) {
    for (const int32_t right : byte_ids_) byte_merges_.push_back(merges_.find(left, right));
  }
  if (!options_.ignore_merges) return;
  whole_pieces_.reserve(vocab_.count(), 1 << 20);
  std::string bytes;
  for (int32_t id = 0; id < vocab_.size(); ++id) {
    bytes.clear();
    if (vocab_.has(id) && append_spelled(vocab_.token(id), bytes)) {
      whole_pieces_.add(bytes, id, {.what = options_.what, .tokens = vocab_.count()});
    }
  }
}

void Bpe::encode(std::string_view piece, PieceTokens& out) const {
  QKV_CHECK(piece.size() <= kLongestPiece, options_.what, ": a piece of ", piece.size(),
            " bytes without a place to cut it, but the limit is ", kLongestPiece, Hint("cut the text into documents"));
  if (options_.ignore_merges) {
    const int32_t whole = (options_.byte_level ? whole_pieces_ : vocab_).find(piece);
    if (whole >= 0) return out.put(whole, piece.size());
  }
  Symbols symbols(piece.size());
  options_.byte_level ? split_bytes(piece, symbols) : split_characters(piece, symbols);
  symbols.count <= kFew ? merge_few(symbols) : merge_many(symbols);
  out.ids.insert(out.ids.end(), symbols.ids, symbols.ids + symbols.count);
  out.ends.insert(out.ends.end(), symbols.ends, symbols.ends + symbols.count);
}

void Bpe::split_bytes(std::string_view piece, Symbols& out) const {
  for (size_t i = 0; i < piece.size(); ++i) out.put(byte_ids_[static_cast<unsigned char>(piece[i])], i + 1);
}

// Hugging Face keeps an unknown character back until the next known one, so byte tokens can overtake it; the lengths
// still add up from the left.
void Bpe::split_characters(std::string_view piece, Symbols& out) const {
  size_t unknown = 0, end = 0;  // bytes of the unknown token that waits; bytes given out so far
  const auto give = [&](int32_t id, size_t length) {
    end += length;
    out.put(id, end);
  };
  const auto give_unknown = [&] {
    if (unknown > 0) give(unk_id_, unknown);
    unknown = 0;
  };
  std::string decorated;
  for (size_t at = 0; at < piece.size();) {
    const size_t length = char_at(piece, at).bytes;
    const bool first = at == 0, last = at + length == piece.size();
    std::string_view symbol = piece.substr(at, length);
    if ((!first && !options_.continuing_subword_prefix.empty()) || (last && !options_.end_of_word_suffix.empty())) {
      decorated.clear();
      if (!first) decorated += options_.continuing_subword_prefix;
      decorated += symbol;
      if (last) decorated += options_.end_of_word_suffix;
      symbol = decorated;
    }
    at += length;
    if (const int32_t id = vocab_.find(symbol); id >= 0) {
      give_unknown();
      give(id, length);
      continue;
    }
    const bool has_bytes = options_.byte_fallback && std::ranges::all_of(symbol, [&](char byte) {
                             return byte_ids_[static_cast<unsigned char>(byte)] >= 0;
                           });
    if (has_bytes && symbol.size() == length) {
      for (const char byte : symbol) give(byte_ids_[static_cast<unsigned char>(byte)], 1);
    } else if (unk_id_ >= 0) {
      if (!options_.fuse_unk) give_unknown();
      unknown += length;
    }
  }
  give_unknown();
}

void Bpe::merge_few(Symbols& symbols) const {
  size_t count = symbols.count;
  if (count < 2) return;
  int32_t* ids = symbols.ids;
  uint32_t* ends = symbols.ends;
  uint32_t ranks[kFew];
  int32_t joined[kFew];
  const auto look = [&](size_t i) {
    const MergeTable::Merge merge = merges_.find(ids[i], ids[i + 1]);
    ranks[i] = merge.rank;
    joined[i] = merge.id;
  };
  for (size_t i = 0; i + 1 < count; ++i) look(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == MergeTable::kNoRank) break;
    ids[best] = joined[best];
    for (size_t i = best; i + 1 < count; ++i) ends[i] = ends[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) ids[i] = ids[i + 1];
    for (size_t i = best; i + 2 < count; ++i) {
      ranks[i] = ranks[i + 1];
      joined[i] = joined[i + 1];
    }
    --count;
    if (best > 0) look(best - 1);
    if (best + 1 < count) look(best);
  }
  symbols.count = count;
}

void Bpe::merge_many(Symbols& symbols) const {
  constexpr uint32_t kNone = UINT32_MAX;
  const auto count = static_cast<uint32_t>(symbols.count);
  std::vector<uint32_t> before(count), after(count), ranks(count, MergeTable::kNoRank);
  std::vector<int32_t> joined(count);
  // Lowest rank first, then leftmost: both in one number.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> waiting;
  const auto look = [&](uint32_t i) {
    const MergeTable::Merge merge = after[i] == kNone ? MergeTable::Merge{MergeTable::kNoRank, -1}
                                                      : merges_.find(symbols.ids[i], symbols.ids[after[i]]);
    ranks[i] = merge.rank;
    joined[i] = merge.id;
    if (merge.rank != MergeTable::kNoRank) waiting.push(uint64_t{merge.rank} << 32 | i);
  };
  for (uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? kNone : i - 1;
    after[i] = i + 1 == count ? kNone : i + 1;
  }
  for (uint32_t i = 0; i < count; ++i) look(i);
  while (!waiting.empty()) {
    const uint64_t top = waiting.top();
    waiting.pop();
    const auto i = static_cast<uint32_t>(top);
    if (ranks[i] != top >> 32) continue;  // one of the two has been joined with another since
    const uint32_t gone = after[i];
    symbols.ids[i] = joined[i];
    symbols.ends[i] = symbols.ends[gone];
    ranks[gone] = MergeTable::kNoRank;
    after[i] = after[gone];
    if (after[i] != kNone) before[after[i]] = i;
    look(i);
    if (before[i] != kNone) look(before[i]);
  }
  size_t kept = 0;
  for (uint32_t i = 0; i != kNone; i = after[i]) {
    symbols.ids[kept] = symbols.ids[i];
    symbols.ends[kept++] = symbols.ends[i];
  }
  symbols.count = kept;
}

}  // namespace qkv

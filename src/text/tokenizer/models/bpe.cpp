#include "text/tokenizer/models/bpe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/unicode/characters.h"

namespace qkv {
namespace {

constexpr size_t kLongestPiece = 1 << 26;  // bounds the memory: a symbol takes about 40 bytes

}  // namespace

// Two different merges give different tokens or cut one token at different places, so there are fewer merges than bytes.
Bpe::Bpe(Vocab vocab, Merges merges, BpeOptions options)
    : vocab_(std::move(vocab)), options_(std::move(options)), merges_(std::min(merges.count, vocab_.bytes())) {
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

void Bpe::read_merges(Merges merges) {
  std::string joined;
  size_t number = 0;
  merges.give([&](std::string_view left, std::string_view right, uint32_t rank) {
    const auto id_of = [&](std::string_view token) {
      const int32_t id = vocab_.find(token);
      QKV_CHECK(id >= 0, options_.what, ": merge ", number, " joins ", printable(left), " and ", printable(right),
                " but ", printable(token), " is not in the vocabulary",
                Hint("vocabulary and merges must be of one tokenizer"));
      return id;
    };
    const int32_t left_id = id_of(left), right_id = id_of(right);
    const size_t prefix = options_.continuing_subword_prefix.size();
    QKV_CHECK(right.size() >= prefix, options_.what, ": merge ", number, " has ", printable(right),
              " on the right, which is shorter than the prefix ", printable(options_.continuing_subword_prefix),
              Hint("vocabulary and merges must be of one tokenizer"));
    joined.assign(left);
    joined += right.substr(prefix);
    merges_.add(left_id, right_id, {rank, id_of(joined)});
    ++number;
  });
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
}

void Bpe::encode(std::string_view piece, PieceTokens& out) const {
  QKV_CHECK(piece.size() <= kLongestPiece, options_.what, ": a piece of ", piece.size(),
            " bytes without a place to cut it, but the limit is ", kLongestPiece, Hint("cut the text into documents"));
  if (options_.ignore_merges && piece.size() <= vocab_.bytes()) {
    const int32_t whole = options_.byte_level ? vocab_.find(bytes_to_letters(piece)) : vocab_.find(piece);
    if (whole >= 0) return out.put(whole, piece.size());
  }
  BpeSymbols symbols(piece.size());
  if (options_.byte_level) {
    encode_bytes(piece, symbols);
  } else {
    split_characters(piece, symbols);
    merge(merges_, symbols);
  }
  out.ids.insert(out.ids.end(), symbols.ids, symbols.ids + symbols.count);
  out.ends.insert(out.ends.end(), symbols.ends, symbols.ends + symbols.count);
}

void Bpe::encode_bytes(std::string_view piece, BpeSymbols& symbols) const {
  const auto byte = [&](size_t i) { return size_t{static_cast<unsigned char>(piece[i])}; };
  for (size_t i = 0; i < piece.size(); ++i) symbols.put(byte_ids_[byte(i)], i + 1);
  if (piece.size() > BpeSymbols::kFew) return merge(merges_, symbols);
  MergeTable::Merge pairs[BpeSymbols::kFew];
  for (size_t i = 0; i + 1 < piece.size(); ++i) pairs[i] = byte_merges_[byte(i) << 8 | byte(i + 1)];
  merge(merges_, symbols, {pairs, piece.size()});
}

// Hugging Face emits an unknown token only before the next known character, so byte tokens may come before it. The
// lengths still add up from the left.
void Bpe::split_characters(std::string_view piece, BpeSymbols& out) const {
  size_t unknown = 0, end = 0;  // bytes of the pending unknown token; bytes emitted so far
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

}  // namespace qkv

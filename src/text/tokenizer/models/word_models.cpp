#include "text/tokenizer/models/word_models.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv {

WordPiece::WordPiece(Vocab vocab, WordPieceOptions options)
    : vocab_(std::move(vocab)), options_(std::move(options)), unk_id_(vocab_.find(options_.unk_token)) {
  QKV_CHECK(unk_id_ >= 0, options_.what, ": the unknown token ", printable(options_.unk_token),
            " is not in the vocabulary", Hint("WordPiece needs one: add it to the vocabulary"));
  for (int32_t id = 0; id < vocab_.size(); ++id) longest_ = std::max(longest_, vocab_.token(id).size());
}

void WordPiece::encode(std::string_view piece, PieceTokens& out) const {
  const auto characters =
      static_cast<size_t>(std::ranges::count_if(piece, [](char byte) { return !is_utf8_continuation(byte); }));
  const size_t before = out.ids.size();
  if (characters <= options_.max_input_chars_per_word && cut(piece, out)) return;
  out.ids.resize(before);
  out.ends.resize(before);
  out.put(unk_id_, piece.size());
}

bool WordPiece::cut(std::string_view piece, PieceTokens& out) const {
  std::string continued;
  for (size_t start = 0; start < piece.size();) {
    size_t end = std::min(piece.size(), start + longest_);
    while (end < piece.size() && end > start && is_utf8_continuation(piece[end])) --end;
    int32_t id = -1;
    while (end > start) {
      std::string_view candidate = piece.substr(start, end - start);
      if (start > 0) {
        continued = options_.continuing_subword_prefix;
        continued += candidate;
        candidate = continued;
      }
      id = vocab_.find(candidate);
      if (id >= 0) break;
      do --end;
      while (end > start && is_utf8_continuation(piece[end]));
    }
    if (id < 0) return false;
    out.put(id, end);
    start = end;
  }
  return true;
}

WordLevel::WordLevel(Vocab vocab, WordLevelOptions options)
    : vocab_(std::move(vocab)), options_(std::move(options)), unk_id_(vocab_.find(options_.unk_token)) {}

void WordLevel::encode(std::string_view piece, PieceTokens& out) const {
  int32_t id = vocab_.find(piece);
  if (id < 0) id = unk_id_;
  QKV_CHECK(id >= 0, options_.what, ": the word ", printable(piece), " is not in the vocabulary and neither is ",
            printable(options_.unk_token), " for unknown words", Hint("add an unknown token to the vocabulary"));
  out.put(id, piece.size());
}

}  // namespace qkv

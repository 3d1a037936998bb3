#include "text/sentencepiece_bpe.h"

#include <algorithm>

#include "base/checked.h"
#include "text/utf8.h"

namespace qkv {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

uint64_t key_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// SentencePiece walks by lead bytes.
uint32_t character_size(std::string_view text, size_t at) {
  return static_cast<uint32_t>(std::min(utf8_promised(text[at]), text.size() - at));
}

bool is_matched(SentencePieceModel::Type type) {
  using Type = SentencePieceModel::Type;
  return type == Type::normal || type == Type::user_defined || type == Type::unused;
}

}  // namespace

SentencePieceBpe::SentencePieceBpe(const SentencePieceModel& model) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (const auto& piece : model.pieces) {
    if (is_matched(piece.type)) ids.emplace(piece.text, static_cast<int32_t>(scores_.size()));
    scores_.push_back(piece.score);
    unused_.push_back(piece.type == SentencePieceModel::Type::unused);
    has_unused_ = has_unused_ || unused_.back();
  }
  // A character may take part in merges without being a piece: it gets a number behind them.
  int32_t next = narrow<int32_t>(model.pieces.size(), "number of pieces");
  std::vector<std::pair<std::string_view, int32_t>> characters;
  for (const auto& piece : model.pieces) {
    if (!is_matched(piece.type)) continue;
    const std::string_view text = piece.text;
    for (size_t at = 0; at < text.size(); at += character_size(text, at)) {
      const auto [found, is_new] = ids.emplace(text.substr(at, character_size(text, at)), next);
      if (is_new) ++next;
      characters.emplace_back(found->first, found->second);
    }
  }
  characters_ = ByteTrie(std::move(characters));
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (is_matched(model.pieces[id].type)) add_merges(model.pieces[id].text, static_cast<int32_t>(id), ids);
  }
}

// Every pair of pieces or characters whose joined text is this piece.
void SentencePieceBpe::add_merges(std::string_view piece, int32_t id,
                                  const std::unordered_map<std::string_view, int32_t>& ids) {
  int32_t previous = -1;
  for (size_t at = 0; at < piece.size();) {
    const uint32_t size = character_size(piece, at);
    const int32_t character = ids.at(piece.substr(at, size));
    if (at > 0) {
      neighbours_.insert(key_of(previous, character));
      const auto left = ids.find(piece.substr(0, at)), right = ids.find(piece.substr(at));
      if (left != ids.end() && right != ids.end()) merges_.emplace(key_of(left->second, right->second), id);
    }
    previous = character;
    at += size;
  }
}

void SentencePieceBpe::encode(std::string_view text, const ByteTrie& user_defined, std::vector<Cut>& out) const {
  Work work;
  for (uint32_t at = 0; at < text.size();) {
    Symbol symbol = first_symbol(text.substr(at), user_defined);
    at += symbol.size;
    symbol.end = at;
    // No merge reaches over two characters that stand side by side in no piece, so what is before them can go. How an
    // unused piece is taken apart depends on the whole text.
    if (!work.symbols.empty() && !has_unused_ && !may_merge(work.symbols.back(), symbol)) hand_out(work, out);
    work.symbols.push_back(symbol);
  }
  hand_out(work, out);
}

SentencePieceBpe::Symbol SentencePieceBpe::first_symbol(std::string_view text, const ByteTrie& user_defined) const {
  if (const auto own = user_defined.longest(text); own.length > 0) {
    return {.id = own.value, .size = own.length, .frozen = true};
  }
  const uint32_t size = character_size(text, 0);
  return {.id = characters_.find(text.substr(0, size)), .size = size};
}

bool SentencePieceBpe::may_merge(const Symbol& left, const Symbol& right) const {
  return !left.frozen && !right.frozen && left.id >= 0 && right.id >= 0 &&
         neighbours_.contains(key_of(left.id, right.id));
}

void SentencePieceBpe::offer(Work& work, uint32_t left, uint32_t right) const {
  if (left == kNone || right == kNone) return;
  const Symbol &a = work.symbols[left], &b = work.symbols[right];
  if (a.frozen || b.frozen || a.id < 0 || b.id < 0) return;
  const auto found = merges_.find(key_of(a.id, b.id));
  if (found == merges_.end()) return;
  const int32_t id = found->second;
  work.queue.push_back(
      {.score = scores_[static_cast<size_t>(id)], .left = left, .right = right, .size = a.size + b.size, .id = id});
  std::push_heap(work.queue.begin(), work.queue.end());
  if (unused_[static_cast<size_t>(id)]) work.halves[id] = {.left = a.id, .right = b.id, .right_size = b.size};
}

void SentencePieceBpe::merge(Work& work) const {
  auto& symbols = work.symbols;
  const auto count = static_cast<uint32_t>(symbols.size());
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i].prev = i > 0 ? i - 1 : kNone;
    symbols[i].next = i + 1 < count ? i + 1 : kNone;
  }
  for (uint32_t i = 1; i < count; ++i) offer(work, i - 1, i);
  while (!work.queue.empty()) {
    const Pair best = work.queue.front();
    std::pop_heap(work.queue.begin(), work.queue.end());
    work.queue.pop_back();
    Symbol &left = symbols[best.left], &right = symbols[best.right];
    if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
    left.id = best.id;
    left.size = best.size;
    left.end = right.end;
    left.next = right.next;
    if (right.next != kNone) symbols[right.next].prev = best.left;
    right.size = 0;
    offer(work, left.prev, best.left);
    offer(work, best.left, left.next);
  }
}

void SentencePieceBpe::hand_out(Work& work, std::vector<Cut>& out) const {
  if (work.symbols.size() > 1) merge(work);
  for (const Symbol& symbol : work.symbols) {
    if (symbol.size > 0) put(work, {.id = symbol.id, .end = symbol.end}, out);
  }
  work.symbols.clear();
}

// An unused piece is given as the two it was made from, and those likewise.
void SentencePieceBpe::put(const Work& work, Cut cut, std::vector<Cut>& out) const {
  std::vector<Cut> left_to_do{cut};
  while (!left_to_do.empty()) {
    const Cut next = left_to_do.back();
    left_to_do.pop_back();
    const bool is_piece = next.id >= 0 && next.id < static_cast<int32_t>(scores_.size());
    const auto halves =
        is_piece && unused_[static_cast<size_t>(next.id)] ? work.halves.find(next.id) : work.halves.end();
    if (halves == work.halves.end()) {
      out.push_back({.id = is_piece ? next.id : -1, .end = next.end});
      continue;
    }
    left_to_do.push_back({.id = halves->second.right, .end = next.end});
    left_to_do.push_back({.id = halves->second.left, .end = next.end - halves->second.right_size});
  }
}

}  // namespace qkv

#include "text/tokenizer/sentencepiece/sentencepiece_bpe.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/seeded_hash.h"
#include "text/tokenizer/models/bpe_merge.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using Ids = std::unordered_map<std::string_view, int32_t, SeededHash>;

constexpr int32_t kUnknownCharacter = -1;
constexpr size_t kLongestBpeText = size_t{1} << 26;  // bounds the memory: a symbol takes about 40 bytes

// User-defined pieces are never merged: they get ids that no merge has.
int32_t frozen(int32_t id) {
  return -2 - id;
}

uint64_t key_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// SentencePiece steps by lead bytes.
size_t character_size(std::string_view text, size_t at) {
  return std::min(utf8_length_from_lead(text[at]), text.size() - at);
}

// BpeTables shared by the model and the pre-tokenizer.
class BpeTables {
 public:
  BpeTables(const SentencePieceModel& model, ByteTrie user_defined);

  struct Symbol {
    int32_t id;
    size_t size;
  };
  Symbol first_symbol(std::string_view text) const {
    if (const auto own = user_defined_.longest(text); own.length > 0) return {frozen(own.value), own.length};
    const size_t size = character_size(text, 0);
    return {characters_.find(text.substr(0, size)), size};
  }

  // True if a merge may cross the two: they are adjacent in some piece. Unknown characters also stay together, as one
  // token.
  bool may_merge(int32_t left, int32_t right) const {
    return (is_no_piece(left) && is_no_piece(right)) || neighbours_.contains(key_of(left, right));
  }

  void put(BpeSymbols& symbols, UnknownRuns& runs, int32_t unk_id) const;
  const MergeTable& merges() const { return merges_; }

 private:
  struct Merge {
    int32_t left, right, id;
  };
  bool is_no_piece(int32_t character) const { return character == kUnknownCharacter || character >= pieces_; }
  void number_characters(const SentencePieceModel& model, Ids& ids);
  std::vector<Merge> find_merges(const SentencePieceModel& model, const Ids& ids);
  void take_unused_apart(const SentencePieceModel& model, const std::vector<Merge>& merges);

  ByteTrie user_defined_;
  ByteTrie characters_;  // to ids; ids beyond the pieces are characters that are no piece
  std::unordered_set<uint64_t, SeededHash> neighbours_;
  MergeTable merges_{0};
  int32_t pieces_ = 0;
  std::unordered_map<int32_t, std::pair<Symbol, Symbol>> halves_;  // of unused pieces
};

bool is_matched(SentencePieceModel::Type type) {
  using enum SentencePieceModel::Type;
  return type == normal || type == user_defined || type == unused;
}

BpeTables::BpeTables(const SentencePieceModel& model, ByteTrie user_defined) : user_defined_(std::move(user_defined)) {
  pieces_ = narrow<int32_t>(model.pieces.size(), "number of pieces");
  Ids ids;
  for (int32_t id = 0; id < pieces_; ++id) {
    const auto& piece = model.pieces[static_cast<size_t>(id)];
    if (is_matched(piece.type)) ids.emplace(piece.text, id);
  }
  number_characters(model, ids);
  const std::vector<Merge> merges = find_merges(model, ids);

  // Pieces of equal score share a rank, so that the leftmost is merged first.
  std::vector<float> scores;
  for (const auto& piece : model.pieces) scores.push_back(piece.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  merges_ = MergeTable(merges.size());
  for (const Merge& merge : merges) {
    const float score = model.pieces[static_cast<size_t>(merge.id)].score;
    const auto rank = std::lower_bound(scores.begin(), scores.end(), score, std::greater<>()) - scores.begin();
    merges_.add(merge.left, merge.right, {.rank = static_cast<uint32_t>(rank), .id = merge.id});
  }
  take_unused_apart(model, merges);
}

// A character may be part of merges without being a piece: it gets an id beyond the pieces.
void BpeTables::number_characters(const SentencePieceModel& model, Ids& ids) {
  std::vector<std::pair<std::string_view, int32_t>> characters;
  int32_t next = pieces_;
  for (const auto& piece : model.pieces) {
    if (!is_matched(piece.type)) continue;
    const std::string_view text = piece.text;
    for (size_t at = 0; at < text.size(); at += character_size(text, at)) {
      const auto [found, is_new] = ids.emplace(text.substr(at, character_size(text, at)), next);
      next += is_new ? 1 : 0;
      characters.emplace_back(found->first, found->second);
    }
  }
  characters_ = ByteTrie(std::move(characters));
}

// All pairs of pieces or characters whose concatenation is a piece.
std::vector<BpeTables::Merge> BpeTables::find_merges(const SentencePieceModel& model, const Ids& ids) {
  std::vector<Merge> merges;
  for (int32_t id = 0; id < pieces_; ++id) {
    const auto& piece = model.pieces[static_cast<size_t>(id)];
    if (!is_matched(piece.type)) continue;
    const std::string_view text = piece.text;
    int32_t previous = kUnknownCharacter;
    for (size_t at = 0, size = 0; at < text.size(); at += size) {
      size = character_size(text, at);
      const int32_t character = ids.at(text.substr(at, size));
      if (at > 0) {
        neighbours_.insert(key_of(previous, character));
        const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
        if (left != ids.end() && right != ids.end()) merges.push_back({left->second, right->second, id});
      }
      previous = character;
    }
  }
  return merges;
}

// An unused piece is merged like any other, then output as its two halves. Its characters always merge in the same
// order, so the halves are what remains without the last merge.
void BpeTables::take_unused_apart(const SentencePieceModel& model, const std::vector<Merge>& merges) {
  for (size_t begin = 0, end = 0; begin < merges.size(); begin = end) {
    const int32_t id = merges[begin].id;
    while (end < merges.size() && merges[end].id == id) ++end;
    const auto& piece = model.pieces[static_cast<size_t>(id)];
    if (piece.type != SentencePieceModel::Type::unused) continue;
    const uint32_t rank = merges_.find(merges[begin].left, merges[begin].right).rank;
    const auto set_rank = [&](uint32_t to) {
      for (size_t i = begin; i < end; ++i) merges_.add(merges[i].left, merges[i].right, {.rank = to, .id = id});
    };
    set_rank(MergeTable::kNoRank);
    BpeSymbols symbols(piece.text.size());
    for (size_t at = 0; at < piece.text.size();) {
      const std::string_view character = std::string_view(piece.text).substr(at, character_size(piece.text, at));
      at += character.size();
      symbols.put(characters_.find(character), at);
    }
    merge(merges_, symbols);
    if (symbols.count == 2) {
      halves_[id] = {{symbols.ids[0], symbols.ends[0]}, {symbols.ids[1], symbols.ends[1] - symbols.ends[0]}};
    }
    set_rank(rank);
  }
}

void BpeTables::put(BpeSymbols& symbols, UnknownRuns& runs, int32_t unk_id) const {
  std::vector<Symbol> open;
  size_t end = 0;
  for (size_t i = 0; i < symbols.count; ++i) {
    open.push_back({symbols.ids[i], symbols.ends[i] - end});
    while (!open.empty()) {
      const auto [id, size] = open.back();
      open.pop_back();
      if (const auto halves = halves_.find(id); halves != halves_.end()) {
        open.push_back(halves->second.second);
        open.push_back(halves->second.first);
        continue;
      }
      end += size;
      const bool is_piece = id >= 0 && id < pieces_;
      runs.take(is_piece ? id : id <= frozen(0) ? frozen(id) : unk_id, static_cast<uint32_t>(end));
    }
  }
}

class SentencePieceBpeSplitter final : public PreTokenizer {
 public:
  explicit SentencePieceBpeSplitter(std::shared_ptr<const BpeTables> tables) : tables_(std::move(tables)) {}

  void split(const TextPiece& piece, PieceSink sink) const override {
    size_t begin = 0, at = 0;
    int32_t previous = 0;
    while (at < piece.text.size()) {
      const BpeTables::Symbol symbol = tables_->first_symbol(piece.text.substr(at));
      if (at > begin && !tables_->may_merge(previous, symbol.id)) {
        sink(piece.part(begin, at));
        begin = at;
      }
      previous = symbol.id;
      at += symbol.size;
    }
    if (at > begin) sink(piece.part(begin, at));
  }

 private:
  std::shared_ptr<const BpeTables> tables_;
};

class SentencePieceBpeModel final : public TokenModel {
 public:
  SentencePieceBpeModel(const SentencePieceModel& model, Vocab vocab, std::shared_ptr<const BpeTables> tables)
      : what_(model.name), vocab_(std::move(vocab)), tables_(std::move(tables)), unk_id_(model.unk_id) {
    byte_fallback_ = model.byte_fallback;
    for (size_t id = 0; id < model.pieces.size(); ++id) {
      if (model.pieces[id].type != SentencePieceModel::Type::byte) continue;
      bytes_.ids[static_cast<size_t>(byte_of_token(model.pieces[id].text))] = static_cast<int32_t>(id);
    }
  }

  void encode(std::string_view piece, PieceTokens& out) const override {
    QKV_CHECK(piece.size() <= kLongestBpeText, what_, ": a text of ", piece.size(),
              " bytes without a place to cut it, but the limit is ", kLongestBpeText,
              Hint("cut the text into documents"));
    BpeSymbols symbols(piece.size());
    for (size_t at = 0; at < piece.size();) {
      const BpeTables::Symbol symbol = tables_->first_symbol(piece.substr(at));
      at += symbol.size;
      symbols.put(symbol.id, at);
    }
    merge(tables_->merges(), symbols);
    UnknownRuns runs(piece, {.unk_id = unk_id_, .bytes = byte_fallback_ ? &bytes_ : nullptr}, out.ids, out.ends);
    tables_->put(symbols, runs, unk_id_);
    runs.finish();
  }
  const Vocab& vocab() const override { return vocab_; }
  int32_t id_shown_as_text() const override { return unk_id_; }

 private:
  std::string what_;
  Vocab vocab_;
  std::shared_ptr<const BpeTables> tables_;
  int32_t unk_id_;
  bool byte_fallback_ = false;
  ByteTokens bytes_;
};

}  // namespace

SentencePieceBpe sentencepiece_bpe(const SentencePieceModel& model, Vocab vocab, ByteTrie user_defined) {
  const auto tables = std::make_shared<const BpeTables>(model, std::move(user_defined));
  return {.pre_tokenizer = std::make_unique<SentencePieceBpeSplitter>(tables),
          .model = std::make_unique<SentencePieceBpeModel>(model, std::move(vocab), tables)};
}

}  // namespace qkv

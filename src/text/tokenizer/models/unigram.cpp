#include "text/tokenizer/models/unigram.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <queue>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr double kUnkPenalty = 10;
constexpr uint32_t kNowhere = UINT32_MAX;
constexpr size_t kWindow = size_t{1} << 16;

}  // namespace

void Unigram::Pieces::reserve(size_t pieces, size_t bytes) {
  texts_.reserve(pieces, bytes);
  scores_.reserve(pieces);
}

void Unigram::Pieces::add(std::string_view text, double score) {
  const size_t id = scores_.size();
  texts_.add(text, narrow<int32_t>(id, "number of unigram pieces"), {.what = "unigram", .tokens = id});
  scores_.push_back(score);
}

Unigram::Unigram(Pieces pieces, Options options) : pieces_(std::move(pieces)), options_(std::move(options)) {
  QKV_CHECK(options_.unk_id < size() && options_.unk_id >= -1, "unk_id is ", options_.unk_id, " but there are ",
            pieces_.size(), " unigram pieces", Hint("the unknown token must be one of the pieces"));
  QKV_ASSERT(options_.matching.empty() || options_.matching.size() == pieces_.size(),
             "unigram: ", options_.matching.size(), " parts for ", pieces_.size(), " pieces");
  const bool all_match = options_.matching.empty();
  std::vector<int32_t> keys;  // unless all match
  for (int32_t id = 0; id < size(); ++id) {
    QKV_CHECK(std::isfinite(score(id)), "score of unigram piece ", id, " ", printable(piece(id)), " is ", score(id),
              " but must be finite", Hint("the tokenizer file is damaged"));
    if (!all_match && options_.matching[static_cast<size_t>(id)] != Matching::never) keys.push_back(id);
    if (const int byte = byte_of_token(piece(id)); byte >= 0) bytes_.ids[static_cast<size_t>(byte)] = id;
  }
  trie_ = ByteTrie(all_match ? pieces_.size() : keys.size(), [&](size_t i) {
    const int32_t id = all_match ? static_cast<int32_t>(i) : keys[i];
    return ByteTrie::Key(piece(id), id);
  });
  prepare_scores();
}

void Unigram::prepare_scores() {
  if (options_.rules == Rules::hugging_face) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const double score : pieces_.scores()) lowest = std::min(lowest, score);
    unk_score_ = lowest - kUnkPenalty;
    return;
  }
  adjusted_.reserve(pieces_.size());
  // SentencePiece considers normal pieces only, and starts its search for the highest score at FLT_MIN.
  float lowest = FLT_MAX, highest = FLT_MIN;
  const auto matching = [&](size_t i) { return options_.matching.empty() ? Matching::normal : options_.matching[i]; };
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (matching(i) != Matching::normal) continue;
    lowest = std::min(lowest, static_cast<float>(pieces_.score(i)));
    highest = std::max(highest, static_cast<float>(pieces_.score(i)));
  }
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const float whole = static_cast<float>(pieces_.text(i).size()) * highest;
    adjusted_.push_back(matching(i) == Matching::always ? double{whole} - 0.1
                                                        : double{static_cast<float>(pieces_.score(i))});
  }
  unk_score_ = double{lowest - static_cast<float>(kUnkPenalty)};
}

// Viterbi over one text. Nodes before base_ are dropped: the prefix that all paths share is emitted early.
template <class Sum>
class Unigram::Search {
 public:
  Search(const Unigram& model, std::string_view text, std::vector<int32_t>& ids, std::vector<uint32_t>& ends)
      : model_(model),
        scores_(model.adjusted_.empty() ? model.pieces_.scores().data() : model.adjusted_.data()),
        text_(text),
        runs_(text,
              {.unk_id = model.options_.unk_id,
               .bytes = model.options_.byte_fallback ? &model.bytes_ : nullptr,
               .names = model.options_.rules == Rules::hugging_face ? &model.trie_ : nullptr},
              ids, ends),
        nodes_(1) {}

  void run() {
    size_t try_at = kWindow;
    uint32_t at = 0;
    const auto size = static_cast<uint32_t>(text_.size());
    while (at < size) {
      const auto length = static_cast<uint32_t>(std::min<size_t>(utf8_length_from_lead(text_[at]), text_.size() - at));
      extend_from(at, length);
      at += length;
      if (nodes_.size() < try_at) continue;
      emit_until(common(at));
      try_at = std::max(kWindow, 2 * nodes_.size());
    }
    emit_until(size);
    runs_.finish();
  }

 private:
  // The best path to a position: its score, its last piece and the start of that piece.
  struct Best {
    Sum score = 0;
    uint32_t start = kNowhere;
    int32_t id = -1;

    void offer(double candidate, uint32_t from, int32_t piece) {
      if (start != kNowhere && !(candidate > double{score})) return;
      score = static_cast<Sum>(candidate);
      start = from;
      id = piece;
    }
  };

  Best& node(uint32_t at) {
    if (at - base_ >= nodes_.size()) nodes_.resize(at - base_ + 1);
    return nodes_[at - base_];
  }

  // Extends paths by every piece that starts here, and by the unknown token if no piece is exactly this character.
  void extend_from(uint32_t at, uint32_t length) {
    const double here = double{node(at).score};
    bool covered = false;
    ByteTrie::Place down;
    for (uint32_t end = at; end < text_.size();) {
      if (!model_.trie_.step(down, static_cast<unsigned char>(text_[end]))) break;
      ++end;
      const int32_t id = model_.trie_.value(down);
      if (id < 0) continue;
      node(end).offer(scores_[id] + here, at, id);
      covered = covered || end - at == length;
    }
    if (covered) return;
    QKV_CHECK(model_.options_.unk_id >= 0, "no piece covers ", printable(text_.substr(at, length)),
              " and the model has no unknown token",
              Hint("the tokenizer must have a piece for this character or an unk_id"));
    node(at + length).offer(static_cast<Sum>(model_.unk_score_ + here), at, model_.options_.unk_id);
  }

  // The last position that all paths through or beyond `at` share.
  uint32_t common(uint32_t at) const {
    std::priority_queue<uint32_t> positions;
    positions.push(at);
    for (size_t i = at - base_ + 1; i < nodes_.size(); ++i) {
      if (nodes_[i].start != kNowhere) positions.push(nodes_[i].start);
    }
    while (true) {
      const uint32_t last = positions.top();
      while (!positions.empty() && positions.top() == last) positions.pop();
      if (positions.empty() || last == base_) return last;
      positions.push(nodes_[last - base_].start);
    }
  }

  void emit_until(uint32_t end) {
    std::vector<uint32_t> path;
    for (uint32_t at = end; at > base_; at = nodes_[at - base_].start) path.push_back(at);
    for (size_t i = path.size(); i-- > 0;) runs_.take(nodes_[path[i] - base_].id, path[i]);
    nodes_.erase(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(end - base_));
    base_ = end;
  }

  const Unigram& model_;
  const double* scores_;
  std::string_view text_;
  UnknownRuns runs_;
  std::vector<Best> nodes_;  // of positions >= base_
  uint32_t base_ = 0;
};

void Unigram::encode(std::string_view text, std::vector<int32_t>& ids, std::vector<uint32_t>& ends) const {
  QKV_CHECK(text.size() < kNowhere, "the text has ", text.size(), " bytes but one piece of text may have ",
            kNowhere - 1, Hint("cut it into documents"));
  if (options_.rules == Rules::hugging_face) {
    Search<double>(*this, text, ids, ends).run();
  } else {
    Search<float>(*this, text, ids, ends).run();
  }
}

}  // namespace qkv

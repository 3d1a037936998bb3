#include "infer/grammar/constraint.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace qkv {

using grammar::TokenSet;
using grammar::Ways;

Constraint::Constraint(std::shared_ptr<const grammar::TokenMasks> masks, std::vector<int32_t> ends)
    : masks_(std::move(masks)), ends_(std::move(ends)) {
  size_t ids = masks_->trie().vocabulary();
  for (const int32_t id : ends_) {
    QKV_CHECK(id >= 0, "an end token has the id ", id, Hint("ids are those of the tokenizer"));
    ids = std::max(ids, static_cast<size_t>(id) + 1);
  }
  allowed_ = TokenSet(ids);
  masks_->parser().start(store_, ways_);
}

bool Constraint::ends_with(int32_t token) const {
  return std::find(ends_.begin(), ends_.end(), token) != ends_.end();
}

const TokenSet& Constraint::allowed() {
  if (known_) return allowed_;
  allowed_.clear();
  masks_->add_allowed(store_, ways_, allowed_);
  // An end token may have bytes of its own; it ends the text all the same.
  for (const int32_t id : ends_) complete() && !ended_ ? allowed_.add(id) : allowed_.remove(id);
  QKV_CHECK(finished() || !allowed_.none(), "after ", bytes_,
            " bytes no token of the vocabulary continues a text that fits the schema",
            Hint("the tokenizer cannot spell what the schema asks for"));
  known_ = true;
  return allowed_;
}

void Constraint::mask(std::span<float> logits) {
  const TokenSet& set = allowed();
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  for (size_t first = 0; first < logits.size(); first += 64) {
    const uint64_t word = first < set.size() ? set.words()[first / 64] : 0;
    const std::span<float> some = logits.subspan(first, std::min<size_t>(64, logits.size() - first));
    if (word == 0) {
      std::fill(some.begin(), some.end(), kMinusInfinity);
    } else if (~word != 0) {
      for (size_t i = 0; i < some.size(); ++i) some[i] = (word >> i & 1) != 0 ? some[i] : kMinusInfinity;
    }
  }
}

void Constraint::accept(int32_t token) {
  known_ = false;
  if (ends_with(token) && complete()) {
    ended_ = true;
    ways_.frames.clear();
    return;
  }
  const grammar::TokenTrie& trie = masks_->trie();
  const bool has_bytes =
      !ends_with(token) && token >= 0 && static_cast<size_t>(token) < trie.vocabulary() && !trie.bytes(token).empty();
  Ways next;
  if (has_bytes) {
    for (const char c : trie.bytes(token)) {
      next.clear();
      masks_->parser().step(store_, ways_.frames, static_cast<uint8_t>(c), next);
      std::swap(ways_, next);
    }
  }
  QKV_CHECK(has_bytes && !ways_.dead(), "token ", token, " after ", bytes_, " bytes does not fit the schema",
            Hint("choose among the tokens that are allowed"));
  bytes_ += trie.bytes(token).size();
  if (store_.size() > shrink_at_) {
    store_.shrink(masks_->grammar(), ways_.frames);
    shrink_at_ = 2 * store_.size() + 4096;
  }
}

}  // namespace qkv

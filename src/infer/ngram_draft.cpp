#include "infer/ngram_draft.h"

#include <algorithm>

#include "base/error.h"

namespace qkv {

NgramDraft::NgramDraft(DraftOptions options) : options_(options) {
  constexpr int64_t kMostTokens = 256, kLongest = 16;
  QKV_CHECK(options.most >= 1 && options.most <= kMostTokens, "a draft of ", options.most,
            " tokens is wanted but must have from 1 to ", kMostTokens, Hint("8 is usual"));
  QKV_CHECK(options.shortest >= 1 && options.shortest <= options.longest && options.longest <= kLongest,
            "n-grams from ", options.shortest, " to ", options.longest, " tokens are to be looked for, but 1 to ",
            kLongest, " are possible", Hint("2 to 4 is usual"));
  suffix_.assign(static_cast<size_t>(options.longest) + 1, kNone);
  suffix_[0] = 0;  // the root: no token at all
  followed_at_.push_back(kNone);
}

int32_t NgramDraft::child(int32_t node, int32_t id) {
  const uint64_t key = static_cast<uint64_t>(node) << 32 | static_cast<uint32_t>(id);
  const auto [at, is_new] = children_.try_emplace(key, static_cast<int32_t>(followed_at_.size()));
  if (is_new) followed_at_.push_back(kNone);
  return at->second;
}

void NgramDraft::add(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    for (size_t n = suffix_.size() - 1; n > 0; --n) {
      if (suffix_[n] != kNone) followed_at_[static_cast<size_t>(suffix_[n])] = static_cast<int64_t>(text_.size());
      suffix_[n] = suffix_[n - 1] == kNone ? kNone : child(suffix_[n - 1], id);
    }
    text_.push_back(id);
  }
}

std::vector<int32_t> NgramDraft::propose() const {
  for (size_t n = suffix_.size() - 1; n >= static_cast<size_t>(options_.shortest); --n) {
    if (suffix_[n] == kNone || followed_at_[static_cast<size_t>(suffix_[n])] == kNone) continue;
    const auto from = text_.begin() + followed_at_[static_cast<size_t>(suffix_[n])];
    return {from, from + std::min<std::ptrdiff_t>(options_.most, text_.end() - from)};
  }
  return {};
}

std::vector<int32_t> draft(std::span<const int32_t> history, const DraftOptions& options) {
  NgramDraft index(options);
  index.add(history);
  return index.propose();
}

}  // namespace qkv

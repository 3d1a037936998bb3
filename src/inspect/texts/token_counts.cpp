#include "inspect/texts/token_counts.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log_sum_exp.h"

namespace qkv {

TokenCounts::TokenCounts(int64_t vocabulary, std::span<const int32_t> before)
    : counts_(static_cast<size_t>(vocabulary)) {
  for (const int32_t token : before) after_[token];
}

void TokenCounts::add(int32_t before, int32_t token) {
  QKV_ASSERT(token >= 0 && token < std::ssize(counts_), "token ", token, " of ", counts_.size());
  ++counts_[static_cast<size_t>(token)];
  ++counted_;
  const auto at = after_.find(before);
  if (at == after_.end()) return;
  ++at->second.counts[token];
  ++at->second.total;
}

void TokenCounts::add(std::span<const int32_t> before, std::span<const int32_t> targets) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] >= 0) add(before.empty() ? kNone : before[i], targets[i]);
  }
}

double TokenCounts::unigram(int32_t token) const {
  return (static_cast<double>(count(token)) + 0.5) /
         (static_cast<double>(counted_) + 0.5 * static_cast<double>(counts_.size()));
}

double TokenCounts::bigram(int32_t before, int32_t token) const {
  const auto at = after_.find(before);
  if (at == after_.end()) return unigram(token);
  const auto seen = at->second.counts.find(token);
  const double times = seen == at->second.counts.end() ? 0 : static_cast<double>(seen->second);
  return (times + kBackoff * unigram(token)) / (static_cast<double>(at->second.total) + kBackoff);
}

void TokenCounts::finish() {
  logs_.clear();
  for (size_t v = 0; v < counts_.size(); ++v) logs_.push_back(std::log(unigram(static_cast<int32_t>(v))));
  for (auto& [before, after] : after_) {
    const double backed = std::log(kBackoff / (static_cast<double>(after.total) + kBackoff));
    after.more.clear();
    for (const auto& [token, times] : after.counts) {
      after.more.emplace_back(token, std::log(bigram(before, token)) - logs_[static_cast<size_t>(token)] - backed);
    }
    std::sort(after.more.begin(), after.more.end());  // a fixed order of summation
  }
}

std::vector<int32_t> TokenCounts::most_frequent(size_t most) const {
  std::vector<int32_t> found;
  for (size_t v = 0; v < counts_.size(); ++v) {
    if (counts_[v] > 0) found.push_back(static_cast<int32_t>(v));
  }
  std::stable_sort(found.begin(), found.end(), [&](int32_t a, int32_t b) { return count(a) > count(b); });
  if (found.size() > most) found.resize(most);
  return found;
}

TokenCounts::Distance TokenCounts::distance(std::span<const float> logits, int32_t before, int32_t target) const {
  QKV_ASSERT(logits.size() == logs_.size(), logits.size(), " logits against ", logs_.size(), " tokens");
  const double lse = log_sum_exp(logits);
  const auto log_p = [&](int32_t token) { return static_cast<double>(logits[static_cast<size_t>(token)]) - lse; };
  double minus_entropy = 0, expected = 0;  // sum p log p, sum p log unigram
  for (size_t v = 0; v < logits.size(); ++v) {
    const double log_v = static_cast<double>(logits[v]) - lse;
    const auto p = static_cast<double>(std::exp(static_cast<float>(log_v)));
    minus_entropy += p * log_v;
    expected += p * logs_[v];
  }
  Distance found{.loss = -log_p(target), .unigram = minus_entropy - expected};
  found.bigram = found.unigram;
  const auto at = after_.find(before);
  if (at == after_.end()) return found;
  const After& after = at->second;
  found.bigram -= std::log(kBackoff / (static_cast<double>(after.total) + kBackoff));
  for (const auto& [token, more] : after.more) {
    found.bigram -= std::exp(log_p(token)) * more;
  }
  return found;
}

}  // namespace qkv

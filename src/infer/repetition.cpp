#include "infer/repetition.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"

namespace qkv {

void check_history(std::span<const int32_t> history, size_t vocabulary) {
  for (size_t i = 0; i < history.size(); ++i) {
    QKV_CHECK(history[i] >= 0 && static_cast<size_t>(history[i]) < vocabulary, "token ", i, " has the id ", history[i],
              " but the model knows ids from 0 to ", vocabulary - 1,
              Hint("the tokenizer and the model do not belong together"));
  }
}

void penalise_repetition(std::span<double> scores, std::span<const int32_t> history, double penalty) {
  if (penalty == 1) return;
  std::vector<bool> seen(scores.size());
  for (const int32_t id : history) {
    const auto i = static_cast<size_t>(id);
    if (!seen[i]) scores[i] = scores[i] < 0 ? scores[i] * penalty : scores[i] / penalty;
    seen[i] = true;
  }
}

void forbid_repeated_ngrams(std::span<double> scores, std::span<const int32_t> history, int64_t n) {
  if (n <= 0 || static_cast<uint64_t>(n) > history.size()) return;
  const auto size = static_cast<size_t>(n);
  const std::span<const int32_t> prefix = history.last(size - 1);
  std::vector<size_t> forbidden;
  for (size_t end = size - 1; end < history.size(); ++end) {
    const auto before = history.subspan(end - (size - 1), size - 1);
    if (std::equal(before.begin(), before.end(), prefix.begin()))
      forbidden.push_back(static_cast<size_t>(history[end]));
  }
  std::sort(forbidden.begin(), forbidden.end());
  forbidden.erase(std::unique(forbidden.begin(), forbidden.end()), forbidden.end());
  if (forbidden.size() == scores.size()) return;
  for (const size_t id : forbidden) scores[id] = -std::numeric_limits<double>::infinity();
}

}  // namespace qkv

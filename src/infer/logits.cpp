#include "infer/logits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace qkv {
namespace {

bool better(const Scored& a, const Scored& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

}  // namespace

void check_logits(std::span<const float> logits, size_t position) {
  QKV_CHECK(!logits.empty(), "there are no logits to choose from at position ", position,
            Hint("give a row of the model's logits"));
  // 0 times a number that is not finite is NaN, and stays. In lanes that do not wait for each other.
  constexpr size_t kLanes = 32;
  std::array<float, kLanes> zeros{};
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    const float* at = logits.data() + i;
    for (size_t lane = 0; lane < kLanes; ++lane) zeros[lane] += at[lane] * 0.0F;
  }
  for (; i < logits.size(); ++i) zeros[0] += logits[i] * 0.0F;
  if (std::all_of(zeros.begin(), zeros.end(), [](float zero) { return zero == 0; })) return;
  const auto bad = std::find_if_not(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); });
  QKV_FAIL("the logit of token ", bad - logits.begin(), " at position ", position, " is ", *bad,
           Hint("the model's weights or its precision are broken;  qkv verify  tells more"));
}

void check_ids(std::span<const int32_t> text, size_t vocabulary) {
  for (size_t i = 0; i < text.size(); ++i) {
    QKV_CHECK(text[i] >= 0 && static_cast<size_t>(text[i]) < vocabulary, "token ", i, " has the id ", text[i],
              " but the model knows ids from 0 to ", vocabulary - 1,
              Hint("the tokenizer and the model do not belong together"));
  }
}

// One pass over the scores; few of them enter the buffer.
template <class Number>
std::vector<Scored> best_of(std::span<const Number> scores, size_t k) {
  k = std::min(k, scores.size());
  if (k == 0) return {};
  const size_t room = std::min(scores.size(), 2 * k + 64);
  std::vector<Scored> best;
  best.reserve(room);
  double floor = -std::numeric_limits<double>::infinity();  // k scores in the buffer are at least as high
  const auto shrink = [&] {
    std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(k) - 1, best.end(), better);
    best.resize(k);
    floor = best.back().score;
  };
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto score = static_cast<double>(scores[i]);
    if (!(score > floor)) continue;  // ties go to the lower id, which came first
    best.push_back({.id = static_cast<int32_t>(i), .score = score});
    if (best.size() == room && room > k) shrink();
  }
  std::sort(best.begin(), best.end(), better);
  if (best.size() > k) best.resize(k);
  return best;
}
template std::vector<Scored> best_of(std::span<const float> scores, size_t k);
template std::vector<Scored> best_of(std::span<const double> scores, size_t k);

void penalise_repetition(std::span<double> scores, std::span<const int32_t> text, double penalty) {
  if (penalty == 1) return;
  std::vector<bool> seen(scores.size());
  for (const int32_t id : text) {
    const auto i = static_cast<size_t>(id);
    if (!seen[i]) scores[i] = scores[i] < 0 ? scores[i] * penalty : scores[i] / penalty;
    seen[i] = true;
  }
}

void forbid_repeated_ngrams(std::span<double> scores, std::span<const int32_t> text, int64_t n) {
  if (n <= 0 || static_cast<uint64_t>(n) > text.size()) return;
  const auto before = static_cast<size_t>(n) - 1;  // tokens of an n-gram before its last
  const std::span<const int32_t> said = text.last(before);
  std::vector<size_t> forbidden;
  for (size_t end = before; end < text.size(); ++end) {
    const auto earlier = text.subspan(end - before, before);
    if (std::equal(earlier.begin(), earlier.end(), said.begin())) forbidden.push_back(static_cast<size_t>(text[end]));
  }
  std::sort(forbidden.begin(), forbidden.end());
  forbidden.erase(std::unique(forbidden.begin(), forbidden.end()), forbidden.end());
  if (forbidden.size() == scores.size()) return;
  for (const size_t id : forbidden) scores[id] = -std::numeric_limits<double>::infinity();
}

}  // namespace qkv

#include "inspect/lens/ladder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/log_sum_exp.h"
#include "core/host_values.h"

namespace qkv {
namespace {

constexpr int64_t kLogits = int64_t{1} << 22;  // per matmul: the vocabulary may be large

std::vector<Guess> best_of(std::span<const double> log_p) {
  std::vector<int32_t> ids(log_p.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = static_cast<std::ptrdiff_t>(std::min(Ladder::kGuesses, ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), [&](int32_t a, int32_t b) {
    const double x = log_p[static_cast<size_t>(a)], y = log_p[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<Guess> best;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const int32_t id = ids[static_cast<size_t>(i)];
    best.push_back({id, std::exp(log_p[static_cast<size_t>(id)])});
  }
  return best;
}

}  // namespace

Rung rung_of(std::span<const double> log_p, std::span<const double> last) {
  Rung rung{.guesses = best_of(log_p)};
  const auto final_guess = static_cast<size_t>(std::max_element(last.begin(), last.end()) - last.begin());
  for (size_t v = 0; v < log_p.size(); ++v) {
    const double p = std::exp(log_p[v]), right = std::exp(last[v]);
    if (p > 0) rung.entropy -= p * log_p[v];
    if (right > 0) rung.kl += right * (last[v] - log_p[v]);
    rung.rank += log_p[v] > log_p[final_guess] ? 1 : 0;
  }
  rung.kl = std::max(rung.kl, 0.0);  // rounding may give slightly less than 0
  return rung;
}

Ladder climb(const Model& model, const Engine& engine, const Looked& seen, const LadderOptions& options) {
  const int64_t levels = std::ssize(seen.streams), rows = seen.rows.count, width = seen.width;
  Ladder ladder{.rows = seen.rows, .levels = std::vector<std::vector<Rung>>(static_cast<size_t>(levels))};
  Arena arena(engine.device());
  Context cx = engine.context(arena, options.precision);
  const auto vocabulary = static_cast<size_t>(model.spec().vocabulary);
  const int64_t most = std::max<int64_t>(kLogits / model.spec().vocabulary, 1);
  const bool predicts = model.spec().kind != ModelSpec::Kind::encoder_only;
  int64_t done = 0;
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t count = std::min(most, rows - first);
    const auto logits_at = [&](int64_t level) {
      arena.rewind({});
      const std::span<const float> stream = seen.streams[static_cast<size_t>(level)];
      const Tensor part = cx.upload(
          stream.subspan(static_cast<size_t>(first * width), static_cast<size_t>(count * width)), {count, width});
      return host_floats(model.read_out(cx, part));
    };
    const auto row_of = [&](const std::vector<float>& all, int64_t r) {
      return log_softmax(std::span(all).subspan(static_cast<size_t>(r) * vocabulary, vocabulary));
    };
    std::vector<std::vector<double>> last;
    const std::vector<float> top = logits_at(levels - 1);
    for (int64_t r = 0; r < count; ++r) {
      last.push_back(row_of(top, r));
      const size_t next = static_cast<size_t>(seen.rows.first + first + r) + 1;
      const bool follows = predicts && next < seen.text.ids.size();
      ladder.losses.push_back(follows ? -last.back()[static_cast<size_t>(seen.text.ids[next])] : std::nan(""));
    }
    for (int64_t level = 0; level < levels; ++level) {
      const std::vector<float> logits = level + 1 < levels ? logits_at(level) : top;
      for (int64_t r = 0; r < count; ++r) {
        ladder.levels[static_cast<size_t>(level)].push_back(rung_of(row_of(logits, r), last[static_cast<size_t>(r)]));
      }
      done += count;
      if (options.progress) options.progress(done);
    }
  }
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    size_t level = static_cast<size_t>(levels - 1);
    const int32_t last = ladder.levels[level][r].guesses.front().id;
    while (level > 0 && ladder.levels[level - 1][r].guesses.front().id == last) --level;
    ladder.settled.push_back(level);
  }
  return ladder;
}

}  // namespace qkv

#include "inspect/lens/lens.h"

#include <algorithm>
#include <cmath>

#include "base/log_sum_exp.h"
#include "inspect/lens/lens_streams.h"
#include "inspect/lens/tuned_lens.h"

namespace qkv {

RowGuess guess_of(std::span<const float> logits) {
  RowGuess g{.top = static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin())};
  g.lse = log_sum_exp(logits);
  return g;
}

double to_probabilities(std::span<float> logits, double lse) {
  double entropy = lse;
  for (float& v : logits) {
    const double p = std::exp(static_cast<double>(v) - lse);
    entropy -= p > 0 ? p * static_cast<double>(v) : 0;
    v = static_cast<float>(p);
  }
  return entropy;
}

namespace {

// log-loss of q under p: -sum p log q, of q's logits.
double cross(std::span<const float> p, std::span<const float> logits, double lse) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0) sum += static_cast<double>(p[i]) * (lse - static_cast<double>(logits[i]));
  }
  return sum;
}

// Counted among those before it: logits that are greater, and equal ones with a smaller id.
int64_t rank_of(std::span<const float> logits, size_t id) {
  int64_t rank = 1;
  for (size_t i = 0; i < logits.size(); ++i) rank += logits[i] > logits[id] || (logits[i] == logits[id] && i < id);
  return rank;
}

class LensProbe : public LensStreams {
 public:
  LensProbe(const Model& model, size_t texts, const TunedLens* tuned)
      : LensStreams(model), model_(model), tuned_(tuned), settled_at_(texts) {
    for (size_t i = 0; i <= model.spec().main_stack().layers.size(); ++i) sums_.emplace_back(texts);
  }

  LensReport report() const {
    LensReport made{.settled_at = estimate(settled_at_)};
    for (size_t d = 0; d < sums_.size(); ++d) {
      const Sums& s = sums_[d];
      made.layers.push_back({.name = d == 0 ? "embed" : std::to_string(d - 1),
                             .agrees = estimate(s.agrees),
                             .rank = estimate(s.rank),
                             .entropy = estimate(s.entropy),
                             .kl = estimate(s.kl),
                             .loss = estimate(s.loss),
                             .settled = estimate(s.settled)});
    }
    return made;
  }

 protected:
  void done(Context& cx) override {
    const int64_t vocabulary = model_.spec().vocabulary, at_once = std::max<int64_t>(kMostLogits / vocabulary, 1);
    for (int64_t first = 0; first < rows(); first += at_once) some(cx, first, std::min(at_once, rows() - first));
  }

 private:
  struct Sums {
    explicit Sums(size_t texts) : agrees(texts), rank(texts), entropy(texts), kl(texts), loss(texts), settled(texts) {}
    std::vector<TextSum> agrees, rank, entropy, kl, loss, settled;
  };
  struct Seen {
    RowGuess guess;
    double entropy = 0, kl = 0;
    int64_t rank = 0;
    float target = 0;  // logit of the token that comes
  };

  std::vector<float> logits(Context& cx, size_t depth, int64_t first, int64_t count) const {
    const Arena::Mark mark = cx.arena.mark();
    Tensor x = stream(cx, depth, first, count);
    if (tuned_ != nullptr && depth + 1 < depths()) x = tuned_->moved(cx, depth, x);
    std::vector<float> made = host_floats(model_.read_out(cx, x));
    cx.arena.rewind(mark);
    return made;
  }

  int32_t target(const PassTexts::At& at) const {
    const TokenText& text = pass().texts[static_cast<size_t>(at.text)];
    const auto i = static_cast<size_t>(at.position);
    if (!text.targets.empty()) return text.targets[i];
    if (model_.spec().kind == ModelSpec::Kind::encoder_only) return TokenText::kIgnored;
    return i + 1 < text.ids.size() ? text.ids[i + 1] : TokenText::kIgnored;
  }

  // Rows [first, first + count), all depths.
  void some(Context& cx, int64_t first, int64_t count) {
    const auto vocabulary = static_cast<size_t>(model_.spec().vocabulary);
    std::vector<float> last = logits(cx, depths() - 1, first, count);  // becomes p_L
    std::vector<std::vector<Seen>> seen(depths(), std::vector<Seen>(static_cast<size_t>(count)));
    std::vector<double> last_entropy(static_cast<size_t>(count));
    const auto row_of = [&](std::vector<float>& all, int64_t r) {
      return std::span(all).subspan(static_cast<size_t>(r) * vocabulary, vocabulary);
    };
    const auto target_of_row = [&](int64_t r) { return target(pass().rows[static_cast<size_t>(first + r)]); };
    for (size_t back = 0; back < depths(); ++back) {
      const size_t depth = depths() - 1 - back;
      std::vector<float> own = back == 0 ? last : logits(cx, depth, first, count);
      cx.exec.pool->run(count, [&](int64_t r, int) {
        const std::span<float> x = row_of(own, r), p = row_of(last, r);
        const auto at = static_cast<size_t>(r);
        Seen& s = seen[depth][at];
        s.guess = guess_of(x);
        if (const int32_t id = target_of_row(r); id != TokenText::kIgnored) s.target = x[static_cast<size_t>(id)];
        if (back == 0) {
          last_entropy[at] = s.entropy = to_probabilities(p, s.guess.lse);
          s.rank = 1;
          return;
        }
        s.rank = rank_of(x, seen.back()[at].guess.top);
        s.kl = std::max(cross(p, x, s.guess.lse) - last_entropy[at], 0.0);
        s.entropy = to_probabilities(x, s.guess.lse);
      });
    }
    for (int64_t r = 0; r < count; ++r) count_row(seen, first, r, target_of_row(r));
  }

  void count_row(const std::vector<std::vector<Seen>>& seen, int64_t first, int64_t r, int32_t target) {
    const auto text = static_cast<size_t>(pass().rows[static_cast<size_t>(first + r)].text);
    const auto at = static_cast<size_t>(r);
    const size_t top = seen.back()[at].guess.top;
    size_t settled = depths() - 1;
    while (settled > 0 && seen[settled - 1][at].guess.top == top) --settled;
    settled_at_[text].add(static_cast<double>(settled));
    for (size_t d = 0; d < depths(); ++d) {
      const Seen& s = seen[d][at];
      Sums& sums = sums_[d];
      sums.agrees[text].add(s.guess.top == top ? 1 : 0);
      sums.rank[text].add(static_cast<double>(s.rank));
      sums.entropy[text].add(s.entropy);
      sums.kl[text].add(s.kl);
      sums.settled[text].add(d == settled ? 1 : 0);
      if (target != TokenText::kIgnored) sums.loss[text].add(s.guess.lse - static_cast<double>(s.target));
    }
  }

  const Model& model_;
  const TunedLens* tuned_;
  std::vector<Sums> sums_;  // by depth
  std::vector<TextSum> settled_at_;
};

}  // namespace

LensReport read_lens(Reader& reader, std::span<const TokenText> texts, const TunedLens* tuned,
                     const Reader::Finished& finished) {
  LensProbe probe(reader.model(), texts.size(), tuned);
  reader.look(texts, probe, finished);
  return probe.report();
}

}  // namespace qkv

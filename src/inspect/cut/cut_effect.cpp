// What a cut costs, and what an encoder alone is asked.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "core/host_values.h"
#include "inspect/cut/ablation.h"
#include "ops/ops.h"

namespace qkv {
namespace {

std::vector<TextSum> sums_of(const std::vector<std::vector<float>>& losses) {
  std::vector<TextSum> sums(losses.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    for (const float loss : losses[i]) sums[i].add(static_cast<double>(loss));
  }
  return sums;
}

// Keeps what the head reads of every row, text after text.
class StatesProbe : public ReadingProbe {
 public:
  StatesProbe(const ModelSpec& spec, size_t texts) : states(texts), main_(spec.main()) {}

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override {
    return site == Site::final && place.stack == main_ ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    const std::vector<float> values = host_floats(x);
    for (const Segment& s : tap.rows->list) {
      std::vector<float>& of_text = states[static_cast<size_t>(s.request)];
      const auto first = values.begin() + s.first_row * x.cols();
      of_text.insert(of_text.end(), first, first + s.rows * x.cols());
    }
  }

  std::vector<std::vector<float>> states;

 protected:
  Stack main_;
};

// Beside another probe's edits: what the head says of the rows now, against what it said of them before.
class Compared : public StatesProbe {
 public:
  Compared(const Model& model, std::span<const TokenText> texts, const StatesProbe& before, ReadingProbe& cut)
      : StatesProbe(model.spec(), 0),
        kl(texts.size()),
        same_guess(texts.size()),
        model_(model),
        texts_(texts),
        before_(before),
        cut_(cut) {}

  void begin(Context& cx, const PassTexts& pass) override { cut_.begin(cx, pass); }
  Ask ask(Place place, Site site) const override { return cut_.ask(place, site) | StatesProbe::ask(place, site); }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    if (cut_.ask(tap.place, tap.site) != Ask::none) cut_.visit(cx, tap, x);
    if (StatesProbe::ask(tap.place, tap.site) == Ask::none) return;
    for (const Segment& s : tap.rows->list) {
      for (int32_t r = 0; r < s.rows; r += kRows) compare(cx, s, r, x);
    }
  }

  std::vector<TextSum> kl, same_guess;

 private:
  static constexpr int32_t kRows = 128;  // of logits at a time

  void compare(Context& cx, const Segment& s, int32_t first, const Tensor& x) {
    const int32_t rows = std::min(kRows, s.rows - first);
    const auto text = static_cast<size_t>(s.request);
    const int64_t width = x.cols(), position = s.position + first;
    const auto mark = cx.arena.mark();
    Probe* const probe = std::exchange(cx.probe, nullptr);
    const std::span<const float> then =
        std::span(before_.states[text])
            .subspan(static_cast<size_t>(position * width), static_cast<size_t>(rows * width));
    const Said p = said(cx, ops::cast(cx, cx.upload(then, {rows, width}), x.dtype()));
    const Said q = said(cx, x.slice(0, s.first_row + first, rows));
    cx.probe = probe;
    cx.arena.rewind(mark);
    const size_t words = p.logits.size() / static_cast<size_t>(rows);
    for (int32_t r = 0; r < rows; ++r) {
      if (texts_[text].target(static_cast<size_t>(position + r)) == TokenText::kIgnored) continue;
      const auto at = static_cast<size_t>(r) * words;
      const auto best = [&](const Said& of) {
        const auto begin = of.logits.begin() + static_cast<std::ptrdiff_t>(at);
        return static_cast<size_t>(std::max_element(begin, begin + static_cast<std::ptrdiff_t>(words)) - begin);
      };
      // The logarithm of the sum, from the likeliest entry: its probability is never tiny.
      const auto lse = [&](const Said& of, size_t top) {
        return static_cast<double>(of.logits[at + top]) - std::log(static_cast<double>(of.chances[at + top]));
      };
      const size_t p_top = best(p), q_top = best(q);
      double sum = lse(q, q_top) - lse(p, p_top);
      for (size_t v = at; v < at + words; ++v) {
        sum +=
            static_cast<double>(p.chances[v]) * (static_cast<double>(p.logits[v]) - static_cast<double>(q.logits[v]));
      }
      kl[text].add(std::max(sum, 0.0));
      same_guess[text].add(p_top == q_top ? 1 : 0);
    }
  }

  struct Said {
    std::vector<float> logits, chances;
  };
  Said said(Context& cx, const Tensor& x) const {
    const Tensor logits = model_.head().forward(cx, x);
    return {host_floats(logits), host_floats(ops::softmax(cx, logits))};
  }

  const Model& model_;
  std::span<const TokenText> texts_;
  const StatesProbe& before_;
  ReadingProbe& cut_;
};

}  // namespace

std::vector<TextSum> loss_sums(Reader& reader, std::span<const TokenText> texts, ReadingProbe* probe,
                               const Reader::Finished& finished) {
  return sums_of(reader.losses(texts, probe, finished));
}

CutEffect effect_of(Reader& reader, std::span<const TokenText> texts, ReadingProbe& probe,
                    const Reader::Finished& finished) {
  const auto in_halves = [&](size_t before) {
    return finished ? [&finished, before](size_t done) { return finished(before + done); } : Reader::Finished{};
  };
  StatesProbe states(reader.model().spec(), texts.size());
  const std::vector<TextSum> before = loss_sums(reader, texts, &states, in_halves(0));
  Compared compared(reader.model(), texts, states, probe);
  const std::vector<TextSum> after = loss_sums(reader, texts, &compared, in_halves(texts.size()));
  return {.before = estimate(before),
          .after = estimate(after),
          .delta = paired_difference(before, after),
          .kl = estimate(compared.kl),
          .same_guess = estimate(compared.same_guess)};
}

std::vector<TokenText> with_hidden_tokens(std::span<const TokenText> texts, const HidingOptions& options) {
  QKV_CHECK(options.mask >= 0, "no token stands for what is hidden", Hint("the tokenizer should name a mask token"));
  const PhiloxKey key = fold({.site = static_cast<uint32_t>(Site::embed)});
  std::vector<TokenText> made(texts.begin(), texts.end());
  for (size_t t = 0; t < made.size(); ++t) {
    TokenText& text = made[t];
    const std::vector<int32_t> ids = text.ids;
    text.targets.assign(ids.size(), TokenText::kIgnored);
    size_t least = ids.size();  // the one that is hidden if chance picks none
    uint32_t lowest = UINT32_MAX;
    const auto hide = [&](size_t i) {
      text.targets[i] = ids[i];
      text.ids[i] = options.mask;
    };
    bool any = false;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (std::find(options.kept.begin(), options.kept.end(), ids[i]) != options.kept.end()) continue;
      const uint32_t drawn = random_u32(key, t, i);
      if (least == ids.size() || drawn < lowest) {
        least = i;
        lowest = drawn;
      }
      if (static_cast<double>(uniform01(drawn)) >= options.share) continue;
      hide(i);
      any = true;
    }
    if (!any && least < ids.size()) hide(least);
  }
  return made;
}

}  // namespace qkv

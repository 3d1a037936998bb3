#include "inspect/watch/watched_roles.h"

#include <bit>
#include <cmath>

#include "core/host_values.h"
#include "ops/ops.h"

namespace qkv {
namespace {

constexpr int64_t kLogitsAtOnce = 1 << 20;

size_t at(WatchedRole role) {
  return static_cast<size_t>(role);
}

class WatchProbe : public ReadingProbe {
 public:
  WatchProbe(Reader& reader, std::span<const TokenText> texts, Snapshot& into)
      : model_(reader.model()), texts_(texts), into_(into) {
    into.roles.resize(all_heads(model_.spec()).size());
  }

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site site) const override { return site == Site::attn_probs ? Ask::stats : Ask::none; }
  void visit(Context&, const Tap&, Tensor&) override {}

 protected:
  // Sums over the rows of a text from position `from` on, made on the device: `add(columns, rows, rows that see more than
  // one key, sum_of_role)` for every text and head. Entropies are divided by ln(keys).
  template <class Add>
  void each(Context& cx, const Tap& tap, const AttentionStats& stats, int64_t from,
            std::initializer_list<WatchedRole> roles, const Add& add) {
    const AttentionSpec& spec = attention_at(model_.spec(), tap.place);
    ops::StatsRowsOnHost rows;
    rows.weights.resize(static_cast<size_t>(tap.rows->rows));
    struct Counted {
      int64_t rows = 0, several = 0;
    };
    std::vector<Counted> counted;
    for (const Segment& s : tap.rows->list) {
      rows.groups.push_back({.first_row = s.first_row, .rows = s.rows, .position = s.position});
      Counted& count = counted.emplace_back();
      for (int32_t r = 0; r < s.rows; ++r) {
        const int64_t position = s.position + r;
        if (position < from) continue;
        int64_t keys = spec.causal ? position + 1 : s.keys;
        if (spec.causal && spec.window > 0) keys = std::min(keys, spec.window);
        if (spec.causal && spec.chunk > 0) keys = std::min(keys, position % spec.chunk + 1);
        const double of_entropy = keys > 1 ? 1 / std::log(static_cast<double>(keys)) : 0;
        rows.weights[static_cast<size_t>(s.first_row + r)] = {1, of_entropy, 0};
        ++count.rows;
        count.several += keys > 1 ? 1 : 0;
      }
    }
    const StatsColumns at{.offsets = stats.at_offset.dim(2)};
    const Tensor y = cx.constant({std::ssize(counted), spec.heads, at.count()}, DType::f64);
    ops::attention_sums(cx, stats, ops::stats_rows(cx, rows), y);
    std::vector<double> sums(static_cast<size_t>(y.count()));
    y.device().download(sums.data(), y.data(), y.count() * size_of(DType::f64));

    const size_t first = first_head(model_.spec(), tap.place), heads = static_cast<size_t>(spec.heads);
    for (size_t h = 0; h < heads; ++h) {
      auto& head = into_.roles[first + h];
      for (const WatchedRole role : roles) head[qkv::at(role)].resize(texts_.size());
      for (size_t n = 0; n < counted.size(); ++n) {
        const auto text = static_cast<size_t>(tap.rows->list[n].request);
        const auto sum = [&](WatchedRole role) -> TextSum& { return head[qkv::at(role)][text]; };
        add(sums.data() + (n * heads + h) * static_cast<size_t>(at.count()), counted[n].rows, counted[n].several, sum);
      }
    }
  }

  const Model& model_;
  std::span<const TokenText> texts_;
  Snapshot& into_;
};

class TextProbe : public WatchProbe {
 public:
  TextProbe(Reader& reader, std::span<const TokenText> texts, const TokenCounts& counts, Snapshot& into)
      : WatchProbe(reader, texts, into),
        counts_(counts),
        pool_(*reader.engine().exec().pool),
        main_(model_.spec().main()) {
    into.texts.resize(texts.size());
  }

  Ask ask(Place place, Site site) const override {
    if (site == Site::final && place.stack == main_) return Ask::read;
    return WatchProbe::ask(place, site);
  }
  StatsWanted stats_wanted(Place) const override { return {.offsets = {1}}; }

  void visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) override {
    using enum WatchedRole;
    const bool across = tap.place.stack == Stack::cross;
    each(cx, tap, stats, 2, {previous, first, entropy, distance},
         [&](const double* y, int64_t rows, int64_t several, const auto& sum) {
           sum(first) += {y[StatsColumns::first], rows};
           sum(entropy) += {y[StatsColumns::entropy], several};
           if (across) return;
           sum(previous) += {y[StatsColumns().at_offset()], rows};
           sum(distance) += {y[StatsColumns::distance], rows};
         });
  }

  // After the final norm: computes logits a few rows at a time.
  void visit(Context& cx, const Tap& tap, Tensor& states) override {
    struct Row {
      size_t text = 0, position = 0;
    };
    std::vector<Row> rows(static_cast<size_t>(states.dim(0)));
    for (const Segment& s : tap.rows->list) {
      for (int32_t r = 0; r < s.rows; ++r) {
        rows[static_cast<size_t>(s.first_row + r)] = {static_cast<size_t>(s.request),
                                                      static_cast<size_t>(s.position + r)};
      }
    }
    const int64_t width = model_.spec().vocabulary;
    const int64_t most = std::max<int64_t>(1, kLogitsAtOnce / width);
    for (int64_t first = 0; first < states.dim(0); first += most) {
      const int64_t count = std::min(most, states.dim(0) - first);
      const Arena::Mark mark = cx.arena.mark();
      const Tensor made = model_.head().forward(cx, states.slice(0, first, count));
      const std::vector<float> logits = host_floats(made.view({made.count()}));
      cx.arena.rewind(mark);
      std::vector<TokenCounts::Distance> found(static_cast<size_t>(count));
      const auto row_of = [&](int64_t i) { return rows[static_cast<size_t>(first + i)]; };
      pool_.run(count, [&](int64_t i, int) {
        const Row row = row_of(i);
        const int32_t target = texts_[row.text].targets[row.position];
        if (target == TokenText::kIgnored) return;
        found[static_cast<size_t>(i)] =
            counts_.distance(std::span(logits).subspan(static_cast<size_t>(i * width), static_cast<size_t>(width)),
                             before(row.text, row.position), target);
      });
      for (int64_t i = 0; i < count; ++i) add(row_of(i).text, row_of(i).position, found[static_cast<size_t>(i)]);
    }
  }

 private:
  // The token before the target in a decoder; none in an encoder, where the target is hidden.
  int32_t before(size_t text, size_t position) const {
    return main_ == Stack::encoder ? TokenCounts::kNone : texts_[text].ids[position];
  }
  void add(size_t text, size_t position, const TokenCounts::Distance& found) {
    if (texts_[text].targets[position] == TokenText::kIgnored) return;
    Snapshot::TextLosses& losses = into_.texts[text];
    losses.loss += found.loss;
    losses.unigram += found.unigram;
    ++losses.targets;
    if (before(text, position) != TokenCounts::kNone) {
      losses.bigram += found.bigram;
      ++losses.after;
    }
    const auto bucket = static_cast<size_t>(std::bit_width(position + 1) - 1);
    if (into_.positions.size() <= bucket) into_.positions.resize(bucket + 1);
    into_.positions[bucket].add(found.loss);
  }

  const TokenCounts& counts_;
  ThreadPool& pool_;
  Stack main_;
};

class RepeatedTextProbe : public WatchProbe {
 public:
  RepeatedTextProbe(Reader& reader, std::span<const TokenText> texts, Snapshot& into)
      : WatchProbe(reader, texts, into), half_(static_cast<int32_t>(texts.front().ids.size() / 2)) {}

  StatsWanted stats_wanted(Place) const override { return {.offsets = {half_, half_ - 1}}; }

  void visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) override {
    using enum WatchedRole;
    const bool across = tap.place.stack == Stack::cross;
    each(cx, tap, stats, half_ + 1, {duplicate, induction},
         [&](const double* y, int64_t rows, int64_t, const auto& sum) {
           if (across) return;
           sum(duplicate) += {y[StatsColumns().at_offset(0)], rows};
           sum(induction) += {y[StatsColumns().at_offset(1)], rows};
         });
  }

 private:
  int32_t half_;
};

}  // namespace

size_t first_head(const ModelSpec& spec, Place place) {
  size_t first = 0;
  for (const Place at : all_attentions(spec)) {
    if (at.stack == place.stack && at.layer == place.layer) break;
    first += static_cast<size_t>(attention_at(spec, at).heads);
  }
  return first;
}

void measure_roles(Reader& reader, std::span<const TokenText> texts, std::span<const TokenText> repeated,
                   const TokenCounts& counts, Snapshot& into) {
  if (!texts.empty()) {
    TextProbe natural(reader, texts, counts, into);
    reader.look(texts, natural);
  }
  if (!repeated.empty()) {
    RepeatedTextProbe twice(reader, repeated, into);
    reader.look(repeated, twice);
  }
}

}  // namespace qkv

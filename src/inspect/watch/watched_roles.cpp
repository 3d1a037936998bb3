#include "inspect/watch/watched_roles.h"

#include <bit>
#include <cmath>

#include "core/host_values.h"

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
  // `add(row, position, keys it sees, sum_of_role)` for every row of every head.
  template <class Add>
  void each(const Tap& tap, std::initializer_list<WatchedRole> roles, const Add& add) {
    const AttentionSpec& spec = attention_at(model_.spec(), tap.place);
    const size_t first = first_head(model_.spec(), tap.place);
    for (size_t h = 0; h < static_cast<size_t>(spec.heads); ++h) {
      auto& head = into_.roles[first + h];
      for (const WatchedRole role : roles) head[at(role)].resize(texts_.size());
      for (const Segment& s : tap.rows->list) {
        for (int32_t r = 0; r < s.rows; ++r) {
          const int64_t position = s.position + r;
          int64_t keys = spec.causal ? position + 1 : s.keys;
          if (spec.causal && spec.window > 0) keys = std::min(keys, spec.window);
          if (spec.causal && spec.chunk > 0) keys = std::min(keys, position % spec.chunk + 1);
          const size_t row = static_cast<size_t>(s.first_row + r) * static_cast<size_t>(spec.heads) + h;
          const auto sum = [&](WatchedRole role) -> TextSum& { return head[at(role)][static_cast<size_t>(s.request)]; };
          add(row, position, keys, sum);
        }
      }
    }
  }
  static std::vector<float> flat(const Tensor& t) { return host_floats(t.view({t.count()})); }

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

  void visit_stats(Context&, const Tap& tap, const AttentionStats& stats) override {
    using enum WatchedRole;
    const std::vector<float> entropy_of = flat(stats.entropy), first_of = flat(stats.first),
                             distance_of = flat(stats.distance), before_of = flat(stats.at_offset);
    const bool across = tap.place.stack == Stack::cross;
    each(tap, {previous, first, entropy, distance}, [&](size_t row, int64_t position, int64_t keys, const auto& sum) {
      if (position < 2) return;
      sum(first).add(static_cast<double>(first_of[row]));
      if (keys > 1) sum(entropy).add(static_cast<double>(entropy_of[row]) / std::log(static_cast<double>(keys)));
      if (across) return;
      sum(previous).add(static_cast<double>(before_of[row]));
      sum(distance).add(static_cast<double>(distance_of[row]));
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
      const std::vector<float> logits = flat(model_.head().forward(cx, states.slice(0, first, count)));
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

  void visit_stats(Context&, const Tap& tap, const AttentionStats& stats) override {
    using enum WatchedRole;
    const std::vector<float> mass = flat(stats.at_offset);
    const bool across = tap.place.stack == Stack::cross;
    each(tap, {duplicate, induction}, [&](size_t row, int64_t position, int64_t, const auto& sum) {
      if (across || position <= half_) return;
      sum(duplicate).add(static_cast<double>(mass[2 * row]));
      sum(induction).add(static_cast<double>(mass[2 * row + 1]));
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

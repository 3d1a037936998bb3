#include "inspect/taps/tap_price.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/host_values.h"
#include "eval/bootstrap.h"
#include "inspect/taps/recorder.h"

namespace qkv {
namespace {

// Requests one kind of data at every tap and discards it.
class DiscardingProbe : public Probe {
 public:
  enum class Wants { nothing, reads, stats, patterns };
  explicit DiscardingProbe(Wants wants) : wants_(wants) {}

  Ask ask(Place, Site site) const override {
    const bool pattern = site == Site::attn_probs;
    switch (wants_) {
      case Wants::nothing:
        return Ask::none;
      case Wants::reads:
        return pattern || site == Site::attn_scores ? Ask::none : Ask::read;
      case Wants::stats:
        return pattern ? Ask::stats : Ask::none;
      case Wants::patterns:
        return pattern ? Ask::pattern : Ask::none;
    }
    return Ask::none;
  }
  void visit(Context&, const Tap&, Tensor&) override {}
  StatsWanted stats_wanted(Place) const override { return {.offsets = {0, 1, 2, 3, 4}}; }

 private:
  Wants wants_;
};

struct Variant {
  std::string what;
  std::unique_ptr<Probe> probe;  // null: no probe
  std::vector<double> seconds;
  std::vector<float> logits;
};

std::vector<Variant> all_variants(const ModelSpec& spec) {
  std::vector<TapId> everything;
  for (const TapInfo& tap : all_taps(spec)) everything.push_back(tap.id);
  std::vector<Variant> variants;
  const auto add = [&](std::string what, std::unique_ptr<Probe> probe) {
    variants.push_back({.what = std::move(what), .probe = std::move(probe)});
  };
  using Wants = DiscardingProbe::Wants;
  add("no probe", nullptr);
  add("a probe that requests nothing", std::make_unique<DiscardingProbe>(Wants::nothing));
  add("every tap but attention maps", std::make_unique<DiscardingProbe>(Wants::reads));
  add("statistics of every head", std::make_unique<DiscardingProbe>(Wants::stats));
  add("attention maps of every head", std::make_unique<DiscardingProbe>(Wants::patterns));
  add("every tap copied to the host", std::make_unique<Recorder>(everything));
  return variants;
}

}  // namespace

std::vector<TapPrice> tap_prices(const Model& model, const Engine& engine, const PriceOptions& options) {
  const ModelSpec& spec = model.spec();
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < options.tokens; ++i) ids.push_back(static_cast<int32_t>(i * 7919 % spec.vocabulary));
  std::vector<Variant> variants = all_variants(spec);
  const TokenText text{.ids = ids, .source = spec.has_source() ? ids : std::vector<int32_t>()};
  Recorder nothing({});
  Reader(model, engine, {.precision = options.precision}).look({&text, 1}, nothing);  // NaN is not equal to itself
  Arena arena(engine.device());
  const auto pass = [&](Variant& variant) {
    arena.rewind({});
    if (auto* recorder = dynamic_cast<Recorder*>(variant.probe.get())) recorder->clear();
    Context cx = engine.context(arena, options.precision);
    cx.probe = variant.probe.get();
    const Rows rows = Rows::batch(cx, 1, options.tokens), source_rows = Rows::batch(cx, 1, options.tokens);
    Model::Input input{.ids = cx.upload(ids), .rows = &rows};
    if (spec.has_source()) {
      input.source_ids = input.ids;
      input.source_rows = &source_rows;
    }
    engine.device().finish();
    const auto start = std::chrono::steady_clock::now();
    const Tensor logits = model.logits(cx, input);
    engine.device().finish();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (variant.logits.empty()) variant.logits = host_floats(logits);
    return took.count();
  };
  for (Variant& variant : variants) pass(variant);  // warm-up: loads the weights
  for (int64_t round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < variants.size(); ++i) {  // rotated: each is first once in a while
      Variant& variant = variants[(i + static_cast<size_t>(round)) % variants.size()];
      variant.seconds.push_back(pass(variant));
    }
    if (options.finished && !options.finished(round + 1)) break;
  }
  std::vector<TapPrice> prices;
  const std::vector<double>& plain = variants.front().seconds;
  for (const Variant& variant : variants) {
    const auto ratio = [&](const auto& at) {
      const auto median = [&](const std::vector<double>& all) {
        std::vector<double> some;
        for (size_t i = 0; i < all.size(); ++i) some.push_back(all[at(i)]);
        std::nth_element(some.begin(), some.begin() + std::ssize(some) / 2, some.end());
        return some[some.size() / 2];
      };
      return median(variant.seconds) / median(plain);
    };
    const auto n = std::ssize(plain);
    const Interval interval = percentile_interval(n, [&](std::span<const int64_t> picked) {
      return ratio([&](size_t i) { return static_cast<size_t>(picked[i]); });
    });
    prices.push_back({.what = variant.what,
                      .seconds = *std::min_element(variant.seconds.begin(), variant.seconds.end()),
                      .ratio = {.mean = ratio([](size_t i) { return i; }),
                                .low = interval.low,
                                .high = interval.high,
                                .n = n,
                                .texts = n},
                      .same_bits = variant.logits == variants.front().logits});
  }
  return prices;
}

}  // namespace qkv

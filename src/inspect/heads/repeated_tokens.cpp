// Induction on repeated random tokens: nothing but the repetition can explain attention to what followed the earlier
// copy. It needs the mass at three distances, which the kernel accumulates.
#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "core/host_values.h"
#include "inspect/heads/head_roles.h"

namespace qkv {
namespace {

class RepeatProbe : public ReadingProbe {
 public:
  RepeatProbe(const ModelSpec& spec, int64_t length, int64_t repeats, int32_t begin, size_t texts)
      : spec_(spec),
        has_source_(spec.has_source()),
        length_(static_cast<int32_t>(length)),
        repeats_(repeats),
        begin_(begin),
        offsets_{1} {
    for (int32_t r = 1; r < repeats; ++r) {
      offsets_.push_back(r * length_);
      offsets_.push_back(r * length_ - 1);
    }
    for (const HeadId& id : all_heads(spec))
      sums_.push_back({.id = id,
                       .previous = Sums(texts),
                       .duplicate = Sums(texts),
                       .induction = Sums(texts),
                       .duplicate_mass = Sums(texts),
                       .induction_mass = Sums(texts)});
  }

  void begin(Context&, const PassTexts& pass) override { pass_ = &pass; }
  Ask ask(Place place, Site site) const override {
    return site == Site::attn_probs && place.stack != Stack::cross ? Ask::stats : Ask::none;
  }
  StatsWanted stats_wanted(Place) const override { return {.offsets = offsets_}; }
  void visit(Context&, const Tap&, Tensor&) override {}

  void visit_stats(Context&, const Tap& tap, const AttentionStats& stats) override {
    const bool source = has_source_ && tap.place.stack == Stack::encoder;
    const auto& rows = source ? pass_->source_rows : pass_->rows;
    const int32_t begin = source ? 0 : begin_;  // position of the first random token
    const std::vector<float> at = host_floats(stats.at_offset);
    const auto heads = static_cast<size_t>(stats.at_offset.dim(1)), offsets = offsets_.size();
    const auto first = std::find_if(sums_.begin(), sums_.end(), [&](const auto& s) {
      return s.id.place().stack == tap.place.stack && s.id.layer == tap.place.layer;
    });
    const bool causal = attention_at(spec_, tap.place).causal;
    for (size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].position < 2) continue;
      const auto text = static_cast<size_t>(rows[r].text);
      const bool again = rows[r].position >= begin + length_;
      const int64_t sees = causal ? rows[r].position + 1 : begin + length_ * repeats_;
      if (again) first->chance.add(1.0 / static_cast<double>(sees));
      for (size_t h = 0; h < heads; ++h) {
        auto& sums = first[static_cast<ptrdiff_t>(h)];
        const float* mass = at.data() + (r * heads + h) * offsets;
        sums.previous[text].add(static_cast<double>(mass[0]));
        double copies = 0, after = 0;
        for (size_t o = 1; o < offsets; o += 2) {
          if (!again || rows[r].position - offsets_[o] < begin) break;  // no earlier copy
          copies += static_cast<double>(mass[o]);
          after += static_cast<double>(mass[o + 1]);
        }
        sums.duplicate_mass[text].add(copies);
        sums.induction_mass[text].add(after);
        if (!again) continue;
        sums.duplicate[text].add(copies);
        sums.induction[text].add(after);
      }
    }
  }

  std::vector<RepeatScore> scores(uint64_t seed) const {
    std::vector<RepeatScore> found;
    for (const auto& s : sums_) {
      const double chance = s.id.head == 0
                                ? (s.chance.count > 0 ? s.chance.sum / static_cast<double>(s.chance.count) : 0)
                                : found.back().chance;
      const auto share = [&](const Sums& sums) { return estimate(sums, seed, Quantity::share); };
      found.push_back({s.id, share(s.previous), share(s.duplicate), share(s.induction), share(s.duplicate_mass),
                       share(s.induction_mass), chance});
    }
    return found;
  }

 private:
  using Sums = std::vector<TextSum>;
  struct HeadSums {
    HeadId id;
    Sums previous, duplicate, induction, duplicate_mass, induction_mass;
    TextSum chance = {};
  };

  const ModelSpec& spec_;
  bool has_source_;
  int32_t length_;
  int64_t repeats_;
  int32_t begin_;
  std::vector<int32_t> offsets_;
  const PassTexts* pass_ = nullptr;
  std::vector<HeadSums> sums_;
};

std::vector<int32_t> all_but_special(const ModelSpec& spec) {
  std::vector<int32_t> special = spec.tokens.eos, tokens;
  for (const auto& id : {spec.tokens.bos, spec.tokens.pad, spec.tokens.decoder_start}) {
    if (id) special.push_back(*id);
  }
  for (int32_t id = 0; id < spec.vocabulary; ++id) {
    if (std::find(special.begin(), special.end(), id) == special.end()) tokens.push_back(id);
  }
  return tokens;
}

}  // namespace

std::vector<RepeatScore> repeat_scores(Reader& reader, const RepeatOptions& options) {
  const ModelSpec& spec = reader.model().spec();
  std::vector<int32_t> from = options.tokens.empty() ? all_but_special(spec) : options.tokens;
  QKV_CHECK(options.length >= kShortestRepeat && options.length <= std::ssize(from) && options.repeats >= 2 &&
                options.texts > 0,
            options.texts, " texts of ", options.length, " tokens repeated ", options.repeats, " times, drawn from ",
            from.size(), Hint("at least 1 text of ", kShortestRepeat, " tokens, twice, and as many to draw from"));
  const std::optional<int32_t> begin = options.begin       ? options.begin
                                       : spec.has_source() ? spec.tokens.decoder_start
                                                           : spec.tokens.bos;
  std::vector<TokenText> texts;
  for (int64_t t = 0; t < options.texts; ++t) {
    const PhiloxKey key = fold({.seed = options.seed, .step = static_cast<uint64_t>(t)});
    for (size_t i = 0; i < static_cast<size_t>(options.length);
         ++i) {  // without replacement: each token has one earlier copy
      const uint64_t left = from.size() - i;
      std::swap(from[i], from[i + (random_u32(key, 0, i) * left >> 32)]);
    }
    TokenText text;
    std::vector<int32_t> random;
    for (int64_t r = 0; r < options.repeats; ++r)
      random.insert(random.end(), from.begin(), from.begin() + options.length);
    if (begin) text.ids.push_back(*begin);
    text.ids.insert(text.ids.end(), random.begin(), random.end());
    if (spec.has_source()) text.source = random;
    texts.push_back(std::move(text));
  }
  RepeatProbe probe(spec, options.length, options.repeats, begin ? 1 : 0, texts.size());
  reader.look(texts, probe);
  return probe.scores(options.seed);
}

}  // namespace qkv

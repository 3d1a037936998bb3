#include "inspect/heads/expert_use.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/permutation.h"
#include "core/host_values.h"
#include "eval/bootstrap.h"

namespace qkv {
namespace {

constexpr int kShuffles = 20;

// Counts [experts][classes], and what knowing one says of the other, in bits.
double information(std::span<const int64_t> table, int64_t experts) {
  const int64_t classes = std::ssize(table) / experts;
  std::vector<double> of_expert(static_cast<size_t>(experts)), of_class(static_cast<size_t>(classes));
  double total = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto count = static_cast<double>(table[i]);
    of_expert[i / static_cast<size_t>(classes)] += count;
    of_class[i % static_cast<size_t>(classes)] += count;
    total += count;
  }
  double bits = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i] == 0) continue;
    const auto count = static_cast<double>(table[i]);
    const double apart = of_expert[i / static_cast<size_t>(classes)] * of_class[i % static_cast<size_t>(classes)];
    bits += count / total * std::log2(count * total / apart);
  }
  return std::max(bits, 0.0);
}

// All a layer's router said.
struct Said {
  int64_t experts = 0, visited = 0;
  std::vector<int32_t> ids;      // [tokens, k]
  std::vector<int32_t> text;     // of every token
  std::vector<int32_t> classes;  // of every token
  std::vector<TextSum> entropy;  // of every text
  std::vector<double> probability;
};

class RouteProbe : public ReadingProbe {
 public:
  RouteProbe(const ModelSpec& spec, std::span<const TokenText> texts, const RoutingOptions& options)
      : spec_(spec), texts_(texts), options_(options) {
    for (size_t i = 0; i < spec.main_stack().layers.size(); ++i) {
      const auto& experts = spec.main_stack().layers[i].feed.experts;
      if (!experts) continue;
      Said& said = layers[static_cast<int16_t>(i)];
      said.experts = experts->count;
      said.visited = experts->rule.top_k;
      said.entropy.resize(texts.size());
      said.probability.resize(static_cast<size_t>(experts->count));
    }
  }

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override {
    return place.stack == spec_.main() && (site == Site::route_logits || site == Site::route_ids) ? Ask::read
                                                                                                  : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    Said& said = layers.at(tap.place.layer);
    if (tap.site == Site::route_ids) {
      const std::vector<int32_t> ids = host_ints(x);
      said.ids.insert(said.ids.end(), ids.begin(), ids.end());
      return;
    }
    const std::vector<float> logits = host_floats(x);
    const bool sigmoid = spec_.main_stack().layers[static_cast<size_t>(tap.place.layer)].feed.experts->rule.sigmoid;
    for (const Segment& s : tap.rows->list) {
      for (int32_t r = 0; r < s.rows; ++r) {
        const auto text = static_cast<size_t>(s.request), row = static_cast<size_t>(s.first_row + r);
        const int32_t id = texts_[text].ids[static_cast<size_t>(s.position + r)];
        said.text.push_back(s.request);
        said.classes.push_back(options_.class_of.at(static_cast<size_t>(id)));
        take(said, std::span(logits).subspan(row * said.probability.size(), said.probability.size()), sigmoid, text);
      }
    }
  }

  std::map<int16_t, Said> layers;

 private:
  static void take(Said& said, std::span<const float> logits, bool sigmoid, size_t text) {
    std::vector<double> p;
    double total = 0, entropy = 0;
    const double highest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
    for (const float logit : logits) {
      const auto x = static_cast<double>(logit);
      p.push_back(sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x - highest));
      total += p.back();
    }
    for (size_t e = 0; e < p.size(); ++e) {
      p[e] /= total;
      said.probability[e] += p[e];
      if (p[e] > 0) entropy -= p[e] * std::log(p[e]);
    }
    said.entropy[text].add(p.size() > 1 ? entropy / std::log(static_cast<double>(p.size())) : 0);
  }

  const ModelSpec& spec_;
  std::span<const TokenText> texts_;
  const RoutingOptions& options_;
};

// [experts][classes] of each text, with the classes as they are or moved to other tokens.
std::vector<std::vector<int64_t>> tables(const Said& said, std::span<const int32_t> classes, int32_t kinds,
                                         size_t texts) {
  std::vector<std::vector<int64_t>> made(texts, std::vector<int64_t>(static_cast<size_t>(said.experts * kinds)));
  for (size_t t = 0; t < classes.size(); ++t) {
    for (int64_t s = 0; s < said.visited; ++s) {
      const int32_t e = said.ids[t * static_cast<size_t>(said.visited) + static_cast<size_t>(s)];
      ++made[static_cast<size_t>(said.text[t])][static_cast<size_t>(e * kinds + classes[t])];
    }
  }
  return made;
}

std::vector<int64_t> sum_of(const std::vector<std::vector<int64_t>>& parts) {
  std::vector<int64_t> sum = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += parts[i][k];
  }
  return sum;
}

double by_chance(const Said& said, int32_t kinds) {
  double sum = 0;
  for (int round = 0; round < kShuffles; ++round) {
    const Permutation shuffled(said.classes.size(), fold({.seed = static_cast<uint64_t>(round)}));
    std::vector<int32_t> moved(said.classes.size());
    for (size_t t = 0; t < moved.size(); ++t) moved[t] = said.classes[shuffled(t)];
    std::vector<int64_t> table(static_cast<size_t>(said.experts * kinds));
    for (size_t i = 0; i < said.ids.size(); ++i) {
      ++table[static_cast<size_t>(said.ids[i] * kinds + moved[i / static_cast<size_t>(said.visited)])];
    }
    sum += information(table, said.experts);
  }
  return sum / kShuffles;
}

Estimate information_of(const Said& said, const std::vector<std::vector<int64_t>>& of_text) {
  const double all = information(sum_of(of_text), said.experts);
  Estimate made{.mean = all, .low = all, .high = all, .n = std::ssize(said.ids), .texts = std::ssize(of_text)};
  if (of_text.size() < 2) return made;
  const Interval interval = bootstrap_interval(std::ssize(of_text), [&](std::span<const int64_t> picked) {
    std::vector<int64_t> sum(of_text.front().size());
    for (const int64_t i : picked) {
      const std::vector<int64_t>& part = of_text[static_cast<size_t>(i)];
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += part[k];
    }
    return information(sum, said.experts);
  });
  made.low = interval.low;
  made.high = interval.high;
  return made;
}

LayerRouting of_layer(int16_t layer, const Said& said, int32_t kinds, size_t texts) {
  const auto tokens = static_cast<double>(said.text.size());
  const auto experts = static_cast<size_t>(said.experts), k = static_cast<size_t>(said.visited);
  const auto of_text = tables(said, said.classes, kinds, texts);
  const std::vector<int64_t> whole = sum_of(of_text);
  LayerRouting made{.layer = layer,
                    .experts = said.experts,
                    .visited = said.visited,
                    .tokens = std::ssize(said.text),
                    .entropy = estimate(said.entropy),
                    .information = information_of(said, of_text),
                    .by_chance = by_chance(said, kinds)};
  std::vector<std::vector<double>> both(experts, std::vector<double>(experts));
  std::vector<std::vector<TextSum>> loads(experts, std::vector<TextSum>(texts));
  for (size_t t = 0; t < said.text.size(); ++t) {
    const std::span<const int32_t> chosen = std::span(said.ids).subspan(t * k, k);
    for (auto& of_expert : loads) ++of_expert[static_cast<size_t>(said.text[t])].count;
    for (const int32_t a : chosen) {
      ++loads[static_cast<size_t>(a)][static_cast<size_t>(said.text[t])].sum;
      for (const int32_t b : chosen) both[static_cast<size_t>(a)][static_cast<size_t>(b)] += 1;
    }
  }
  for (size_t e = 0; e < experts; ++e) {
    ExpertUse use{.load = estimate(loads[e]), .probability = said.probability[e] / tokens};
    const double visits = both[e][e];
    for (size_t other = 0; other < experts; ++other) {
      use.together.push_back(other == e || visits == 0 ? 0 : both[e][other] / visits);
    }
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(e) * kinds;
    use.classes.assign(first, first + kinds);
    made.balance += static_cast<double>(said.experts) * use.load.mean * use.probability;
    made.of_expert.push_back(std::move(use));
  }
  return made;
}

}  // namespace

void check_experts(const ModelSpec& spec) {
  const std::vector<LayerSpec>& layers = spec.main_stack().layers;
  const bool any =
      std::any_of(layers.begin(), layers.end(), [](const LayerSpec& l) { return l.feed.experts.has_value(); });
  QKV_CHECK(any, "a ", spec.family, " of this config has no experts: nothing is routed",
            Hint("experts are in Mixtral, Qwen3-MoE, gpt-oss, DeepSeek and alike"));
}

std::vector<LayerRouting> measure_routing(Reader& reader, std::span<const TokenText> texts,
                                          const RoutingOptions& options) {
  const ModelSpec& spec = reader.model().spec();
  check_experts(spec);
  QKV_ASSERT(std::ssize(options.class_of) >= spec.vocabulary, options.class_of.size(), " classes for ", spec.vocabulary,
             " tokens");
  RouteProbe probe(spec, texts, options);
  reader.look(texts, probe, options.finished);
  std::vector<LayerRouting> found;
  for (const auto& [layer, said] : probe.layers) {
    found.push_back(of_layer(layer, said, options.classes, texts.size()));
  }
  return found;
}

}  // namespace qkv

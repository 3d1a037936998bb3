#include "inspect/heads/head_examples.h"

#include <algorithm>

#include "base/error.h"

namespace qkv {
namespace {

constexpr int32_t kDeciles = 10;

// The heaviest key of a row. The first one is left out where queries and keys are the same tokens: most heads rest there.
HeadExample strongest(std::span<const float> weights, bool skip_first) {
  HeadExample found;
  for (size_t j = skip_first ? 1 : 0; j < weights.size(); ++j) {
    const double weight = static_cast<double>(weights[j]);
    if (found.key >= 0 && weight <= found.strength) continue;
    found.key = static_cast<int64_t>(j);
    found.strength = weight;
  }
  return found;
}

}  // namespace

HeadExamples head_examples(const Model& model, const Engine& engine, std::span<const TokenText> texts,
                           const HeadId& head, const ExampleOptions& options) {
  const bool across = head.stack == Stack::cross;
  const auto maps_of = [&](size_t text) {
    return LayerMaps(model, engine, texts[text], head.place(), {.precision = options.precision});
  };
  const auto row_of = [&](const LayerMaps& maps, int64_t row) {
    return maps.tile(head.head, {row, row + 1, 0, maps.keys()}).cells;
  };
  std::vector<HeadExample> all;
  for (size_t t = 0; t < texts.size(); ++t) {
    const LayerMaps maps = maps_of(t);
    for (int64_t r = across ? 0 : options.first; r < maps.queries(); ++r) {
      HeadExample one = strongest(row_of(maps, r), !across);
      if (one.key < 0) continue;
      one.text = t;
      one.row = r;
      all.push_back(one);
    }
  }
  QKV_CHECK(std::ssize(all) >= kDeciles, "there are ", all.size(), " rows but examples by tenths need ", kDeciles,
            Hint("give more or longer texts"));
  std::stable_sort(all.begin(), all.end(),
                   [](const HeadExample& a, const HeadExample& b) { return a.strength > b.strength; });
  HeadExamples made{.rows = std::ssize(all)};
  for (int32_t decile = kDeciles; decile >= 1; --decile) {
    const size_t begin = static_cast<size_t>(kDeciles - decile) * all.size() / kDeciles,
                 end = static_cast<size_t>(kDeciles - decile + 1) * all.size() / kDeciles;
    made.deciles.insert(made.deciles.begin(), all[end - 1].strength);
    const auto taken = std::min(static_cast<size_t>(options.each), end - begin);
    for (size_t i = 0; i < taken; ++i) {
      HeadExample one = all[begin + i * (end - begin) / taken];
      one.decile = decile;
      one.weights = row_of(maps_of(one.text), one.row);
      made.examples.push_back(std::move(one));
    }
  }
  return made;
}

}  // namespace qkv

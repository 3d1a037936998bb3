#include "labs/two_places.h"

#include <algorithm>

#include "model/families/family.h"
#include "world/draw.h"

namespace qkv {

TrainBatch TwoPlaces::texts(uint64_t seed, int64_t step, int64_t count) const {
  constexpr int32_t kLength = 32;
  world::Draw draw(seed, static_cast<uint64_t>(step), 8);
  TrainBatch batch;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> ids;
    for (int32_t at = 0; at < kLength; ++at) {
      ids.push_back(static_cast<int32_t>(draw.below(kTokens)));
      const bool known = at >= std::max(first, second);
      const auto back = [&](int32_t by) { return ids[static_cast<size_t>(at - by)]; };
      batch.targets.push_back(known ? (back(first) & 12) | (back(second) & 3) : TrainBatch::kIgnored);
      batch.counted += known ? 1 : 0;
    }
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.lengths.push_back(kLength);
  }
  return batch;
}

double two_places_right(const LabContext& lab, const TwoPlaces& task, uint64_t seed) {
  ModelSpec spec = read_spec(
      Config(config_of({.vocabulary = TwoPlaces::kTokens, .width = 64, .layers = 1, .heads = task.heads, .init = 0.05}),
             "the lab's model"));
  AttentionSpec& attention = spec.decoder.layers.front().attention;
  attention.q_bias = attention.k_bias = true;  // where to look does not depend on the token
  if (!task.feed_forward) spec.decoder.layers.front().feed.width = 0;
  const auto model = fresh_model(lab, std::move(spec), seed);
  train_model(lab, *model,
              {.label = "heads: " + std::to_string(task.heads) + (task.feed_forward ? ", feed-forward" : "") +
                        (task.first == task.second ? ", one place" : ""),
               .steps = task.steps,
               .lr = 1e-2,
               .batch = [&](int64_t step) { return task.texts(seed, step, 24); }});
  return share_right(lab.engine, *model, task.texts(seed, -1, lab.sized(100, 10)));
}

}  // namespace qkv

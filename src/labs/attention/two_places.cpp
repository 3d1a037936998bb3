#include "labs/attention/two_places.h"

#include <algorithm>

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
  return one_layer_right(
      lab, task.model,
      {.vocabulary = TwoPlaces::kTokens,
       .steps = task.steps,
       .label = "heads: " + std::to_string(task.model.heads) + (task.model.feed_forward ? ", feed-forward" : "") +
                (task.first == task.second ? ", one place" : ""),
       .texts = [&](int64_t step, int64_t count) { return task.texts(seed, step, count); }},
      seed);
}

}  // namespace qkv

#include "labs/attention/recall.h"

#include <array>
#include <numeric>

#include "labs/shuffle.h"

namespace qkv {

TrainBatch Recall::texts(uint64_t seed, int64_t step, int64_t count) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 12);
  TrainBatch batch;
  std::array<int32_t, kKeys> order{}, value{};
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    for (int32_t& v : value) v = static_cast<int32_t>(draw.below(kValues));
    for (int32_t round = 0; round <= kRounds; ++round) {  // the last one asks
      shuffle(draw, order);
      for (const int32_t key : order) {
        const int32_t known = value[static_cast<size_t>(key)];
        batch.ids.push_back(round < kRounds ? key * kValues + known : kQuestion + key);
        batch.targets.push_back(round < kRounds ? TrainBatch::kIgnored : known);
      }
    }
    batch.lengths.push_back((kRounds + 1) * kKeys);
    batch.counted += kKeys;
  }
  return batch;
}

double recall_right(const LabContext& lab, const OneLayer& model, int64_t steps, uint64_t seed) {
  return one_layer_right(lab, model,
                         {.vocabulary = Recall::kVocabulary,
                          .steps = steps,
                          .label = "looking up",
                          .texts = [&](int64_t step, int64_t count) { return Recall().texts(seed, step, count); }},
                         seed);
}

}  // namespace qkv

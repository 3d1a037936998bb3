#include "labs/words/vectors.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "inspect/taps/recorder.h"
#include "inspect/texts/finite.h"

namespace qkv {
namespace {

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double by = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += by * by;
  }
  return sum;
}

// The mean vector of each label.
Vectors label_means(const Vectors& vectors, std::span<const int32_t> labels) {
  const auto count = static_cast<size_t>(*std::max_element(labels.begin(), labels.end())) + 1;
  std::vector<Vectors> of(count);
  for (size_t i = 0; i < vectors.size(); ++i) of[static_cast<size_t>(labels[i])].push_back(vectors[i]);
  Vectors means;
  for (const Vectors& members : of) {
    QKV_ASSERT(!members.empty(), "label ", means.size(), " of ", count, " has no vector");
    means.push_back(mean_of(members));
  }
  return means;
}

}  // namespace

std::vector<Vectors> stream_vectors(const Engine& engine, const Model& model, const TrainBatch& batch,
                                    std::span<const size_t> rows) {
  const Stack stack = model.spec().main();
  std::vector<TapId> depths{{{stack, 0}, Site::embed}};
  for (size_t layer = 0; layer < model.spec().main_stack().layers.size(); ++layer) {
    depths.push_back({{stack, static_cast<int16_t>(layer)}, Site::resid_post});
  }
  Recorder recorder(depths);
  FiniteProbe checked(model, &recorder);
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  cx.probe = &checked;
  const BatchInput in(cx, batch);
  model.states(cx, in.input);
  std::vector<Vectors> all;
  for (const TapId& depth : depths) {
    const RecordedTap& tap = recorder.last(depth);
    Vectors& at = all.emplace_back();
    for (const size_t row : rows) {
      const std::span<const float> vector = tap.row(static_cast<int64_t>(row));
      at.emplace_back(vector.begin(), vector.end());
    }
  }
  return all;
}

std::vector<float> mean_of(const Vectors& vectors) {
  std::vector<double> sum(vectors.front().size());
  for (const std::vector<float>& v : vectors) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(v[i]);
  }
  std::vector<float> mean;
  for (const double s : sum) mean.push_back(static_cast<float>(s / static_cast<double>(vectors.size())));
  return mean;
}

double share_explained(const Vectors& vectors, std::span<const int32_t> labels) {
  const std::vector<float> middle = mean_of(vectors);
  const Vectors means = label_means(vectors, labels);
  double all = 0, within = 0;
  for (size_t i = 0; i < vectors.size(); ++i) {
    all += squared_distance(vectors[i], middle);
    within += squared_distance(vectors[i], means[static_cast<size_t>(labels[i])]);
  }
  // Equal vectors differ from their mean by rounding alone.
  double size = 0;
  for (const float m : middle) size += static_cast<double>(m) * static_cast<double>(m);
  return all <= 1e-12 * size * static_cast<double>(vectors.size()) ? 0 : std::clamp(1 - within / all, 0.0, 1.0);
}

double nearest_mean_right(const LabelledVectors& known, const LabelledVectors& asked) {
  const Vectors means = label_means(known.vectors, known.labels);
  double right = 0;
  for (size_t i = 0; i < asked.vectors.size(); ++i) {
    const auto own = static_cast<size_t>(asked.labels[i]);
    const double to_own = squared_distance(asked.vectors[i], means[own]);
    bool nearest = true;
    for (size_t label = 0; label < means.size(); ++label) {
      nearest = nearest && (label == own || squared_distance(asked.vectors[i], means[label]) > to_own);
    }
    right += nearest ? 1 : 0;
  }
  return right / static_cast<double>(asked.vectors.size());
}

}  // namespace qkv

#include "pass_cost.h"

#include <algorithm>
#include <cmath>

#include "bed.h"
#include "model/weight_list.h"

namespace qkv::bench {

PassCost::PassCost(const Model& model, const RunOptions& options)
    : options_(options), layers_(model.spec().decoder.layers) {
  const ModelSpec& spec = model.spec();
  double in_blocks = 0;
  for (const WeightSpec& weight : weight_list(spec)) {
    const Param& param = model.weights().at(weight.name);
    const double bytes = number(bytes_in_pass(param, options.precision.compute)),
                 numbers = number(weight.shape.count());
    if (!param.format().plain()) in_blocks += numbers;
    if (weight.part == Part::embedding) {
      row_bytes_ += bytes / number(weight.shape[0]);
      if (weight.name != "embed" || !spec.head.tied) continue;
      bytes_ += bytes;
      head_numbers_ += numbers;
    } else if (weight.shape.rank() == 3) {
      const ExpertsSpec& experts = *layers_[static_cast<size_t>(weight.place.layer)].feed.experts;
      experts_.push_back({bytes, numbers, number(experts.rule.top_k) / number(experts.count)});
    } else {
      bytes_ += bytes;
      if (weight.shape.rank() == 2) (weight.part == Part::head ? head_numbers_ : numbers_) += numbers;
    }
  }
  double all = numbers_ + head_numbers_;
  for (const Experts& experts : experts_) all += experts.numbers;
  integers_ = 2 * in_blocks > all;
}

Cost PassCost::weights(int64_t rows, int64_t rows_of_logits) const {
  const double n = number(rows);
  Cost cost{.bytes = bytes_ + n * row_bytes_,
            .operations = 2 * (n * numbers_ + number(rows_of_logits) * head_numbers_)};
  for (const Experts& experts : experts_) {
    cost.bytes += experts.bytes * (1 - std::pow(1 - experts.chosen, n));
    cost.operations += 2 * n * experts.chosen * experts.numbers;
  }
  return cost;
}

Cost PassCost::attention(int64_t keys) const {
  const double scales = options_.cache == DType::i8 ? 2 * number(size_of(DType::f32)) : 0;
  Cost cost;
  for (const LayerSpec& layer : layers_) {
    const AttentionSpec& a = layer.attention;
    const double seen = number(a.reach() > 0 ? std::min(keys, a.reach()) : keys),
                 width = number(a.width + a.value_width);
    cost.bytes += seen * number(a.kv_heads) * (width * number(size_of(options_.cache)) + scales);
    cost.operations += 2 * seen * number(a.heads) * width;
  }
  return cost;
}

}  // namespace qkv::bench

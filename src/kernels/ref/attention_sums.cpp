#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {

void attention_sums(const Split& split, const AttentionSumsArgs& a) {
  const StatsColumns at = a.columns();
  const AttentionStats& s = a.stats;
  const int64_t heads = a.y.dim(1), labels = a.rows.labels.defined() ? a.rows.labels.count() : 0;
  const In<double> entropy(s.entropy), distance(s.distance), first(s.first), at_offset(s.at_offset),
      in_class(s.in_class);
  const auto* argmax = s.argmax.as<int32_t>();
  split(a.y.dim(0) * heads, [&](Range range) {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const auto* group = a.rows.groups.as<int32_t>() + 4 * (task / heads);
      double* y = a.y.as<double>() + task * at.count();
      for (int64_t c = 0; c < at.count(); ++c) y[c] = 0;
      for (int64_t r = group[0]; r < group[0] + int64_t{group[1]}; ++r) {
        const double* weights = a.rows.weights.as<double>() + 3 * r;
        const int64_t i = r * heads + task % heads, position = group[2] + r - group[0];
        y[at.entropy] += weights[1] * entropy[i];
        y[at.distance] += weights[0] * distance[i];
        y[at.first] += weights[0] * first[i];
        for (int64_t o = 0; o < at.offsets; ++o) {
          y[at.at_offset(o)] += weights[0] * at_offset[i * at.offsets + o];
          if (argmax[i] == position - s.offsets.as<int32_t>()[o]) y[at.strongest(o)] += weights[0];
        }
        for (int64_t k = 0; k < at.classes; ++k) {
          const double mass = in_class[i * at.classes + k];
          y[at.in_class(k)] += weights[0] * mass;
          y[at.again(k)] += weights[2] * mass;
        }
        const int64_t label = int64_t{group[3]} + argmax[i];
        for (int64_t w = 0; w < at.wanted && argmax[i] >= 0 && label < labels; ++w) {
          const bool meant = a.rows.labels.as<int32_t>()[label] == a.rows.wanted.as<int32_t>()[r * at.wanted + w];
          if (meant) y[at.labelled(w)] += weights[0];
        }
      }
    }
  });
}

}  // namespace qkv::kernels::ref

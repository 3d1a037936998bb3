// A pass whose weights are the tensors of a checkpoint, whole or cut out of a fused one.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "support/safetensors_numbers.h"

namespace qkv::test {

// Rows [begin, begin + count) of a stacked weight or bias.
inline Golden rows_of(const Golden& g, int64_t begin, int64_t count) {
  const int64_t width = g.shape.count() / g.shape[0];
  const auto from = g.values.begin() + begin * width;
  return {g.shape.with(0, count), g.dtype, Numbers(from, from + count * width)};
}

// The last two axes change places.
inline Golden transpose(const Golden& g) {
  const int64_t rows = g.shape[-2], cols = g.shape[-1];
  Golden t{g.shape.with(-2, cols).with(-1, rows), g.dtype, {}};
  for (int64_t first = 0; first < g.shape.count(); first += rows * cols) {
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t r = 0; r < rows; ++r) t.values.push_back(g.values[static_cast<size_t>(first + r * cols + c)]);
    }
  }
  return t;
}

class WeightedPass : public Pass {
 public:
  WeightedPass(const GoldenFile& weights, const Options& options) : Pass(options), weights_(weights) {}

  const GoldenFile& weights() const { return weights_; }
  Tensor input_of(const Golden& g) { return input(g.values, g.shape); }
  const Param& weight(const std::string& name) { return weight(name, weights_.at(name)); }
  const Param& weight(const std::string& name, const Golden& g) { return param(name, g.values, g.shape); }
  const Param* weight_or_none(const std::string& name) { return weights_.has(name) ? &weight(name) : nullptr; }

  // y = x w^T + b of a torch Linear, in the pass' compute dtype.
  Tensor linear(const Tensor& x, const Param& w, const Param* b = nullptr) {
    const DType compute = cx.precision.compute;
    return ops::linear(cx, x.dtype() == compute ? x : ops::cast(cx, x, compute), w, {.bias = b});
  }
  Tensor linear(const Tensor& x, const std::string& name) {
    return linear(x, weight(name + ".weight"), weight_or_none(name + ".bias"));
  }

 private:
  const GoldenFile& weights_;
};

// What correctness.md asks of float32 against a golden.
constexpr double kGoldenNmse = 2e-11, kGoldenWorst = 2e-5;

struct Distance {
  double nmse = 0, worst = 0;
  bool within_golden_bounds() const { return nmse <= kGoldenNmse && worst <= kGoldenWorst; }
};
inline Distance distance(const Numbers& got, const Golden& right) {
  return {nmse(got, right.values), worst_in_deviations(got, right.values)};
}
inline std::ostream& operator<<(std::ostream& out, const Distance& d) {
  return out << "NMSE " << d.nmse << ", worst difference " << d.worst << " standard deviations";
}

}  // namespace qkv::test

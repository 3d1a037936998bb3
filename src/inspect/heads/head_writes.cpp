#include "inspect/heads/head_writes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/thread_pool.h"
#include "core/host_values.h"
#include "model/weight_list.h"
#include "ops/ops.h"

namespace qkv {
namespace {

std::vector<int32_t> first_rows(int64_t count, int64_t from = 0) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<int32_t>(from));
  return rows;
}

std::vector<float> vector_of(const Param& weight, double offset) {
  std::vector<float> values = host_floats(weight.master());
  for (float& v : values) v += static_cast<float>(offset);
  return values;
}

double mean_square(std::span<const float> x, double mean) {
  double sum = 0;
  for (const float v : x) sum += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  return sum / static_cast<double>(x.size());
}

}  // namespace

std::vector<float> weight_rows(Context& cx, const Param& weight, std::span<const int32_t> rows) {
  const Arena::Mark before = cx.arena.mark();
  std::vector<float> values = host_floats(ops::embedding(cx, {{.ids = cx.upload(rows), .table = &weight}}));
  cx.arena.rewind(before);
  return values;
}

HeadWrites::HeadWrites(Context& cx, const Model& model, Place place)
    : model_(model), place_(place), spec_(attention_at(model.spec(), place)), out_(model.spec(), place) {
  const ModelSpec& spec = model.spec();
  const bool cross = place.stack == Stack::cross;
  const StackSpec& layers = place.stack == Stack::encoder ? spec.encoder : spec.decoder;
  const LayerSpec& layer = layers.layers[static_cast<size_t>(place.layer)];
  const Param* norm = model.weights().find(layer_prefix(spec, place) + (cross ? "norm_cross_out" : "norm_attn_out"));
  if (norm != nullptr) {
    const NormSpec& kind = layer.norm;
    QKV_CHECK(kind.kind == NormSpec::Kind::rms, "the branch of ", name_of(spec, place),
              " ends in a layer norm, which mixes the outputs of the heads",
              Hint("families with a norm on the branch use RMS norms"));
    norm_eps_ = kind.eps;
    gain_ = vector_of(*norm, kind.offset);
  }
  if (layer.branch_factor != 1) {
    if (gain_.empty()) gain_.assign(static_cast<size_t>(spec.width), 1.0F);
    for (float& g : gain_) g *= static_cast<float>(layer.branch_factor);
  }
  const std::vector<float> w = matrix(cx);  // [C, H E]
  const auto width = static_cast<size_t>(spec_.value_width), heads = static_cast<size_t>(spec_.heads);
  squares_.resize(heads * width * width);
  cx.exec.pool->run(spec_.heads, [&](int64_t h, int) {
    float* square = squares_.data() + static_cast<size_t>(h) * width * width;
    for (int64_t c = 0; c < spec.width; ++c) {
      const std::span<const float> row = out_.of_head(w, c, h);
      for (size_t a = 0; a < width; ++a) {
        for (size_t b = 0; b < width; ++b) square[a * width + b] += row[a] * row[b];
      }
    }
  });
}

std::vector<float> HeadWrites::matrix(Context& cx) const {
  std::vector<float> w = weight_rows(cx, model_.weights().at(out_.weight()), first_rows(model_.spec().width));
  if (gain_.empty()) return w;
  const size_t columns = w.size() / gain_.size();
  for (size_t i = 0; i < w.size(); ++i) w[i] *= gain_[i / columns];
  return w;
}

std::vector<float> HeadWrites::lengths(Context& cx, std::span<const float> x, int64_t groups) const {
  const auto width = static_cast<size_t>(spec_.value_width), heads = static_cast<size_t>(spec_.heads);
  const size_t each = static_cast<size_t>(groups) * width, rows = x.size() / each;
  std::vector<float> found(rows * heads);
  cx.exec.pool->run(spec_.heads, [&](int64_t head, int) {
    const auto h = static_cast<size_t>(head);
    const size_t group = groups == spec_.heads ? h : static_cast<size_t>(kv_head_of(spec_, head));
    const float* square = squares_.data() + h * width * width;
    for (size_t r = 0; r < rows; ++r) {
      const float* v = x.data() + r * each + group * width;
      float sum = 0;
      for (size_t a = 0; a < width; ++a) {
        float dot = 0;
        for (size_t b = 0; b < width; ++b) dot += square[a * width + b] * v[b];
        sum += v[a] * dot;
      }
      found[r * heads + h] = std::sqrt(std::max(sum, 0.0F));
    }
  });
  return found;
}

double HeadWrites::scale_of(std::span<const float> out) const {
  return has_norm() ? 1 / std::sqrt(mean_square(out, 0) + norm_eps_) : 1;
}

LogitDirections::LogitDirections(Context& cx, const Model& model) : model_(model) {
  const ModelSpec& spec = model.spec();
  const auto width = static_cast<size_t>(spec.width);
  gain_.assign(width, 1);
  if (spec.main_stack().final_norm) {
    const std::string name = stack_prefix(spec, Stack::decoder) + "norm_final";
    gain_ = vector_of(model.weights().at(name), spec.norm.offset);
  }
  constexpr int64_t kAtOnce = 2048;
  std::vector<double> sum(width);
  for (int64_t at = 0; at < spec.vocabulary; at += kAtOnce) {
    const std::vector<float> rows =
        weight_rows(cx, model.head().weight(), first_rows(std::min(kAtOnce, spec.vocabulary - at), at));
    for (size_t i = 0; i < rows.size(); ++i) sum[i % width] += static_cast<double>(rows[i]);
  }
  for (const double s : sum) mean_.push_back(static_cast<float>(s / static_cast<double>(spec.vocabulary)));
}

std::vector<float> LogitDirections::of(Context& cx, std::span<const int32_t> tokens) const {
  const size_t width = mean_.size();
  std::vector<float> rows = weight_rows(cx, model_.head().weight(), tokens);
  const bool centred = model_.spec().main_stack().final_norm && model_.spec().norm.kind == NormSpec::Kind::layer;
  for (size_t r = 0; r < tokens.size(); ++r) {
    const std::span<float> row(rows.data() + r * width, width);
    double mean = 0;
    for (size_t c = 0; c < width; ++c) {
      row[c] = (row[c] - mean_[c]) * gain_[c] * static_cast<float>(model_.spec().head.factor);
      mean += static_cast<double>(row[c]) / static_cast<double>(width);
    }
    if (!centred) continue;  // (x - mean(x)) . w = x . (w - mean(w))
    for (float& v : row) v -= static_cast<float>(mean);
  }
  return rows;
}

double LogitDirections::scale_of(std::span<const float> stream) const {
  const ModelSpec& spec = model_.spec();
  if (!spec.main_stack().final_norm) return 1;
  const bool layer = spec.norm.kind == NormSpec::Kind::layer;
  const double mean =
      layer ? std::accumulate(stream.begin(), stream.end(), 0.0) / static_cast<double>(stream.size()) : 0;
  return 1 / std::sqrt(mean_square(stream, mean) + spec.norm.eps);
}

std::string LogitDirections::why_not(const ModelSpec& spec) {
  if (spec.kind == ModelSpec::Kind::encoder_only) return "an encoder predicts hidden tokens, not the next one";
  if (spec.head.transform) return "the output head of this model has a layer of its own";
  for (const LayerSpec& layer : spec.decoder.layers) {
    if (layer.place == NormPlace::after)
      return "norms after every layer change the residual stream: a head's output does not reach the logits unchanged";
  }
  return "";
}

}  // namespace qkv

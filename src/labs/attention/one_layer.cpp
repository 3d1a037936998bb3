#include "labs/attention/one_layer.h"

#include <cmath>

#include "base/random_fill.h"
#include "core/host_values.h"
#include "model/families/family.h"

namespace qkv {
namespace {

void put_floats(const LabContext& lab, const Tensor& to, const std::vector<float>& numbers) {
  lab.engine.device().upload(to.data(), numbers.data(), std::ssize(numbers) * size_of(DType::f32));
}

Param& attention_weight(Model& model, const std::string& name) {
  for (auto& [full, weight] : model.weights()) {
    if (full.ends_with("attn." + name)) return weight;
  }
  QKV_ASSERT(false, "the model has no weight attn.", name);
  return model.weights().begin()->second;
}

// Keeps tied matrices tied and fixed ones at 0. Two matrices that begin equal and get the sum of their gradients at every
// step are one matrix; a projection with a matrix of 0 is its bias, a learnt vector.
class HeldMatrices {
 public:
  HeldMatrices(const LabContext& lab, Model& model, const OneLayer& form, uint64_t seed) : lab_(lab) {
    if (form.tie == OneLayer::Tie::q_and_k) {
      tie(model, "q", "k");
      tie(model, "q.bias", "k.bias");
    }
    if (form.tie == OneLayer::Tie::k_and_v) tie(model, "k", "v");
    if (form.tie == OneLayer::Tie::heads) {
      for (const char* name : {"q", "k", "v", "q.bias", "k.bias"}) shared_.push_back(&attention_weight(model, name));
      heads_ = static_cast<size_t>(form.heads);
      for (const Param* weight : shared_) copy_first_head(*weight);
    }
    if (form.fixed == OneLayer::Fixed::q_and_k) {
      fix(model, "q", seed);
      fix(model, "k", seed + 1);
    }
    if (form.fixed == OneLayer::Fixed::v) fix(model, "v", seed);
  }

  void hold_gradients() const {
    for (const auto& [a, b] : pairs_) {
      std::vector<float> sum = host_floats(a->gradient());
      const std::vector<float> other = host_floats(b->gradient());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
      put_floats(lab_, a->gradient(), sum);
      put_floats(lab_, b->gradient(), sum);
    }
    for (Param* weight : zeros_) put_floats(lab_, weight->gradient(), zeros_of(*weight));
    for (Param* weight : shared_) {
      copy_first_head(*weight);  // what rounding took apart
      std::vector<float> sum = host_floats(weight->gradient());
      const size_t each = sum.size() / heads_;
      for (size_t i = each; i < sum.size(); ++i) sum[i % each] += sum[i];
      for (size_t i = each; i < sum.size(); ++i) sum[i] = sum[i % each];
      put_floats(lab_, weight->gradient(), sum);
    }
  }

  void check_held() const {
    for (const auto& [a, b] : pairs_) {
      QKV_ASSERT(host_floats(a->master()) == host_floats(b->master()), a->name(), " and ", b->name(),
                 " were to be one matrix and differ");
    }
    for (const Param* weight : zeros_) {
      QKV_ASSERT(host_floats(weight->master()) == zeros_of(*weight), weight->name(), " was to stay 0 and did not");
    }
    for (const Param* weight : shared_) {
      const std::vector<float> values = host_floats(weight->master());
      const size_t each = values.size() / heads_;
      for (size_t i = each; i < values.size(); ++i) {
        QKV_ASSERT(std::abs(values[i] - values[i % each]) < 1e-3F, "the heads of ", weight->name(), " were to be one");
      }
    }
  }

 private:
  static std::vector<float> zeros_of(const Param& weight) {
    return std::vector<float>(static_cast<size_t>(weight.shape().count()));
  }

  void copy_first_head(const Param& weight) const {
    std::vector<float> values = host_floats(weight.master());
    const size_t each = values.size() / heads_;
    for (size_t i = each; i < values.size(); ++i) values[i] = values[i % each];
    put_floats(lab_, weight.master(), values);
  }

  void tie(Model& model, const std::string& a, const std::string& b) {
    Param &first = attention_weight(model, a), &second = attention_weight(model, b);
    put_floats(lab_, second.master(), host_floats(first.master()));
    pairs_.emplace_back(&first, &second);
  }

  // Vectors of 0 would not learn: the gradient of a query is a key.
  void fix(Model& model, const std::string& name, uint64_t seed) {
    Param &matrix = attention_weight(model, name), &vector = attention_weight(model, name + ".bias");
    put_floats(lab_, matrix.master(), zeros_of(matrix));
    std::vector<float> drawn(static_cast<size_t>(vector.shape().count()));
    fill_normal(fold({.seed = seed, .site = 11}), 0, 0.5F, drawn);
    put_floats(lab_, vector.master(), drawn);
    zeros_.push_back(&matrix);
  }

  const LabContext& lab_;
  std::vector<std::pair<Param*, Param*>> pairs_;
  std::vector<Param*> zeros_;
  std::vector<Param*> shared_;  // one head's rows for all heads
  size_t heads_ = 1;
};

}  // namespace

double one_layer_right(const LabContext& lab, const OneLayer& form, const OneLayerTask& task, uint64_t seed) {
  ModelSpec spec = read_spec(
      Config(config_of({.vocabulary = task.vocabulary, .width = 64, .layers = 1, .heads = form.heads, .init = 0.05}),
             "the lab's model"));
  AttentionSpec& attention = spec.decoder.layers.front().attention;
  attention.q_bias = attention.k_bias = true;  // where to look need not depend on the token
  attention.v_bias = form.fixed == OneLayer::Fixed::v;
  if (form.narrow > 0) {
    attention.width = attention.value_width = form.narrow;
    attention.rope.reset();
  }
  if (!form.feed_forward) spec.decoder.layers.front().feed.width = 0;
  const auto model = fresh_model(lab, std::move(spec), seed);
  const HeldMatrices held(lab, *model, form, seed);
  train_model(lab, *model,
              {.label = task.label,
               .steps = task.steps,
               .lr = 1e-2,
               .batch = [&](int64_t step) { return task.texts(step, 24); },
               .before_update = [&](Context&) { held.hold_gradients(); }});
  held.check_held();
  return share_right(lab.engine, *model, task.texts(-1, lab.sized(100, 10)));
}

}  // namespace qkv

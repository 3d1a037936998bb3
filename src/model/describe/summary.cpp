#include "model/describe/summary.h"

#include <algorithm>

#include "base/checked.h"
#include "core/engine.h"
#include "model/model.h"

namespace qkv {
namespace {

class Counter {
 public:
  explicit Counter(const ModelSpec& spec) : spec_(spec) {}

  ModelSummary run() {
    for (const WeightSpec& weight : weight_list(spec_)) count(weight);
    s_.f32 = product(4, s_.parameters);
    s_.bf16 = product(2, s_.parameters);
    s_.q8 = product(4, vectors_) + product(17, s_.parameters - vectors_) / 16;
    s_.q4 = product(4, vectors_) + product(9, s_.parameters - vectors_) / 16;
    s_.training.state = product(16, s_.parameters);
    group_layers();
    cache();
    return std::move(s_);
  }

 private:
  static int64_t product(int64_t a, int64_t b) { return (CheckedU64(a, "a size of the model") * b).as<int64_t>(); }
  static void add(int64_t& to, int64_t more) { to = (CheckedU64(to, "the size of the model") + more).as<int64_t>(); }
  const StackSpec& stack(Stack which) const { return which == Stack::encoder ? spec_.encoder : spec_.decoder; }

  void count(const WeightSpec& weight) {
    int64_t numbers = 1;
    for (const int64_t d : weight.shape.dims()) numbers = product(numbers, d);
    add(s_.parameters, numbers);
    add(s_.parts[weight.part], numbers);
    if (weight.shape.rank() == 1) vectors_ += numbers;
    if (weight.in_layer) {
      add(layers_[{weight.place.stack, weight.place.layer}][weight.part], numbers);
    } else {
      add(s_.outside[weight.part], numbers);
    }
    int64_t active = numbers;
    if (weight.name.find(".mlp.experts.") != std::string::npos) {
      const LayerSpec& layer = stack(weight.place.stack).layers[static_cast<size_t>(weight.place.layer)];
      active = numbers / layer.feed.experts->count * layer.feed.experts->rule.top_k;
    }
    add(s_.active, active);
  }

  void group_layers() {
    for (const Stack which : {Stack::encoder, Stack::decoder}) {
      const auto begin = static_cast<std::ptrdiff_t>(s_.groups.size());
      for (const auto& [place, parts] : layers_) {
        if (place.first != which) continue;
        const auto at = std::find_if(s_.groups.begin() + begin, s_.groups.end(),
                                     [&parts = parts](const LayerGroup& group) { return group.parts == parts; });
        if (at != s_.groups.end()) {
          at->layers.push_back(place.second);
          continue;
        }
        int64_t total = 0;
        for (const auto& [part, numbers] : parts) total += numbers;
        s_.groups.push_back({.stack = which, .layers = {place.second}, .parts = parts, .parameters = total});
      }
    }
  }

  static int64_t kept(const AttentionSpec& a) {
    return a.latent ? a.latent->kv_rank + a.latent->rope_width : product(a.kv_heads, a.width + a.value_width);
  }

  void cache() {
    if (spec_.kind == ModelSpec::Kind::encoder_only) return;
    for (const LayerSpec& layer : spec_.decoder.layers) {
      const AttentionSpec& a = layer.attention;
      s_.cache.latent = a.latent.has_value();
      add(s_.cache.per_token, kept(a));
      if (a.reach() == 0) add(s_.cache.per_token_beyond, kept(a));
      const int64_t positions = a.reach() > 0 ? std::min(a.reach(), spec_.context) : spec_.context;
      add(s_.cache.at_context, product(kept(a), positions));
      if (layer.cross) add(s_.cache.per_source_token, kept(*layer.cross));
    }
  }

  const ModelSpec& spec_;
  ModelSummary s_;
  std::map<std::pair<Stack, int64_t>, PartCounts> layers_;
  int64_t vectors_ = 0;  // numbers in them
};

// Plans a training step: an arena without memory and kernels that do nothing give the memory of a real step.
int64_t plan_activations(const ModelSpec& spec, int64_t length) {
  Weights weights;
  for (const WeightSpec& w : weight_list(spec)) weights.add(Param(w.name, cpu_device(), DType::f32, w.shape, {}));
  const std::unique_ptr<Model> model = Model::make(spec, std::move(weights));
  const Engine engine(Kernels::none(), {.threads = 1});
  Arena arena(cpu_device(), 0, Arena::Mode::plan), gradients(cpu_device(), 0, Arena::Mode::plan);
  Tape tape(gradients);
  Context cx = engine.context(arena, Precision::bf16());
  cx.tape = &tape;
  cx.training = true;
  const Tensor ids = cx.upload(std::vector<int32_t>(static_cast<size_t>(length), 0));
  const Rows rows = Rows::batch(cx, 1, length);
  const Head& head = model->head();
  const Tensor states = model->states(cx, {.ids = ids, .rows = &rows, .source_ids = ids, .source_rows = &rows});
  const ops::Loss loss =
      ops::cross_entropy(cx, head.before_logits(cx, states), head.weight(), ids, {.bias = head.bias()});
  tape.backward(cx, loss.loss);
  return arena.peak() + gradients.peak();
}

}  // namespace

ModelSummary summarise(const ModelSpec& spec) {
  constexpr int64_t kLength = 1024;
  ModelSummary summary = Counter(spec).run();
  summary.training.length = spec.context > 0 ? std::min(spec.context, kLength) : kLength;
  summary.training.activations = plan_activations(spec, summary.training.length);
  return summary;
}

std::string layers_text(const std::vector<int64_t>& layers) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < layers.size();) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    runs.push_back(std::to_string(layers[i]) + (last == i ? "" : "-" + std::to_string(layers[last])));
    i = last + 1;
  }
  constexpr size_t kShown = 4;
  std::string text = layers.size() == 1 ? "layer " : "layers ";
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool left_out = runs.size() > kShown && i >= kShown - 1 && i + 1 < runs.size();
    if (left_out && i > kShown - 1) continue;
    text += (i == 0 ? "" : ", ") + (left_out ? "..." : runs[i]);
  }
  return text;
}

}  // namespace qkv

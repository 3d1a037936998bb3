// Why scores are divided by sqrt(d): without it the softmax saturates and its gradient vanishes.
#include <cmath>

#include "base/random_fill.h"
#include "core/host_values.h"
#include "labs/labs.h"
#include "labs/planted.h"
#include "labs/repeated_tokens.h"
#include "labs/small_model.h"
#include "model/families/family.h"
#include "ops/ops.h"
#include "train/step.h"

namespace qkv::labs {
namespace {

constexpr int64_t kScaleKeys = 64, kScaleHeads = 4;
constexpr std::array<int64_t, 4> kWidths{4, 16, 64, 256};
enum ScalePart { kSaturation, kGradient, kSuffers };

struct Softness {
  double entropy = 0;   // of a row, divided by ln(keys)
  double gradient = 0;  // Frobenius norm of d probabilities / d scores
};

// q and k with unit variance, as in the claim, through the engine's own attention.
Softness softness(const Engine& engine, int64_t width, std::optional<double> scale, uint64_t seed) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  const auto numbers = [&](uint32_t site) {
    std::vector<float> all(static_cast<size_t>(kScaleKeys * kScaleHeads * width));
    fill_normal(fold({.seed = seed, .step = static_cast<uint64_t>(width), .site = site}), 0, 1, all);
    return cx.upload(all, {kScaleKeys, kScaleHeads, width});
  };
  const Tensor q = numbers(1), k = numbers(2), v = numbers(3);
  const Rows rows = Rows::batch(cx, 1, kScaleKeys);
  const ops::AttentionOptions options{.scale = scale};
  const ops::Attended seen = ops::attention(cx, q, k, v, rows, options);
  const std::vector<float> probs = host_floats(ops::attention_pattern(cx, q, k, seen.lse, rows, options));
  Softness sum;
  const auto n = static_cast<size_t>(kScaleKeys);
  for (size_t row = 0; row < probs.size() / n; ++row) {
    double entropy = 0, squares = 0, all = 0;
    for (size_t j = 0; j < n; ++j) {
      const auto p = static_cast<double>(probs[row * n + j]);
      if (p > 0) entropy -= p * std::log(p);
      squares += p * p;
      all += p * p * (1 - 2 * p);
    }
    // J = diag(p) - p p':  |J|^2 = sum p^2 - 2 sum p^3 + (sum p^2)^2
    sum.entropy += entropy / std::log(static_cast<double>(n));
    sum.gradient += std::sqrt(std::max(0.0, all + squares * squares));
  }
  const auto count = static_cast<double>(probs.size() / n);
  return {sum.entropy / count, sum.gradient / count};
}

struct ScaleTraining {
  double loss = 0;      // of repeated tokens
  double gradient = 0;  // norm of the gradients of W_Q and W_K at the first step
};

// One head as wide as the model, with initial weights that keep unit variance.
ScaleTraining train_scale(const LabContext& lab, std::optional<double> scale, const char* label, uint64_t seed) {
  constexpr int64_t kWidth = 128;
  const RepeatedTokens task;
  ModelSpec spec = read_spec(Config(config_of({.vocabulary = task.vocabulary,
                                               .width = kWidth,
                                               .layers = 2,
                                               .heads = 1,
                                               .init = 1 / std::sqrt(static_cast<double>(kWidth))}),
                                    "the lab's model"));
  if (scale) {
    for (LayerSpec& layer : spec.decoder.layers) layer.attention.scale = *scale;
  }
  const auto model = fresh_model(lab, std::move(spec), seed);

  ScaleTraining result;
  {
    Arena arena(lab.engine.device()), gradients(lab.engine.device());
    Tape tape(gradients);
    Context cx = lab.engine.context(arena, Precision::f32());
    cx.tape = &tape;
    const TrainBatch batch = task.texts(seed, 0, 16);
    tape.backward(cx, loss_of(cx, *model, batch, {}, {.divisor = static_cast<double>(batch.counted)}).loss);
    double of_scores = 0;
    for (auto& [name, weight] : model->weights()) {
      if (name.ends_with("attn.q") || name.ends_with("attn.k")) {
        for (const float g : host_floats(weight.gradient()))
          of_scores += static_cast<double>(g) * static_cast<double>(g);
      }
      weight.clear_gradient();
    }
    result.gradient = std::sqrt(of_scores);
  }
  train_model(lab, *model,
              {.label = label,
               .steps = lab.sized(400),
               .lr = 2e-3,
               .optimizer = OptimizerSpec::Kind::adamw,
               .batch = [&](int64_t step) { return task.texts(seed, step, 16); }});
  const TrainBatch held = task.texts(seed, -1, 64);
  result.loss = mean_loss(lab.engine, *model, {&held, 1});
  return result;
}

SeedNumbers measure_scale(const LabContext& lab, uint64_t seed) {
  return scale_numbers(lab, seed);
}

}  // namespace

SeedNumbers scale_numbers(const LabContext& lab, uint64_t seed, std::optional<double> with_scale) {
  SeedNumbers out;
  SeedNumbers::Curve with{"head width", "entropy", "with 1/sqrt(d)"}, without{"head width", "entropy", "without"};
  SeedNumbers::Curve slope{"head width", "gradient of the softmax", "with 1/sqrt(d)"},
      slope_without{"head width", "gradient of the softmax", "without"};
  for (const int64_t width : kWidths) {
    const auto x = static_cast<double>(width);
    const Softness scaled = softness(lab.engine, width, with_scale, seed), raw = softness(lab.engine, width, 1.0, seed);
    with.points.push_back({x, scaled.entropy});
    without.points.push_back({x, raw.entropy});
    slope.points.push_back({x, scaled.gradient});
    slope_without.points.push_back({x, raw.gradient});
  }
  out.add_share("entropy at width 256, with", with.points.back().y);
  out.add_share("entropy at width 256, without", without.points.back().y);
  out.add_amount("gradient of the softmax, width 256 over width 4, with",
                 slope.points.back().y / slope.points.front().y);
  out.add_amount("gradient of the softmax, width 256 over width 4, without",
                 slope_without.points.back().y / slope_without.points.front().y);
  const ScaleTraining scaled = train_scale(lab, with_scale, "with 1/sqrt(d)", seed),
                      raw = train_scale(lab, 1.0, "without", seed);
  out.add_amount("first gradient of W_Q and W_K, without over with", raw.gradient / scaled.gradient);
  out.add_amount("loss of repeated tokens after training, with", scaled.loss);
  out.add_amount("loss of repeated tokens after training, without", raw.loss);
  out.add("loss without less loss with", raw.loss - scaled.loss);
  out.curves = {with, without, slope, slope_without};
  return out;
}

const Lab& scale() {
  static const Lab lab{
      .name = "scale",
      .claim =
          "Without 1/sqrt(d) the softmax of wide heads saturates: one key takes all, its gradient vanishes, and\n"
          "training suffers.",
      .claim_zh = "不除以 √d 时，宽头的 softmax 会饱和：一个键独占全部权重，梯度消失，训练变差。",
      .how =
          "Queries and keys of unit variance, 64 keys, heads of width 4 to 256: entropy of the weights over ln 64 and\n"
          "the norm of d probabilities / d scores. Then two layers with one head of width 128 learn repeated random\n"
          "tokens, 400 steps, with and without the scale, from initial weights that keep unit variance.",
      .seeds = 3,
      .rules = {{"entropy at width 256, without", LabRule::Side::below, 0.2, "a fifth of uniform attention",
                 kSaturation},
                {"entropy at width 256, with", LabRule::Side::above, 0.8, "the scale keeps it soft", kSaturation},
                {"gradient of the softmax, width 256 over width 4, without", LabRule::Side::below, 0.5,
                 "half of it is gone", kGradient},
                {"gradient of the softmax, width 256 over width 4, with", LabRule::Side::above, 0.8,
                 "the scale keeps it", kGradient},
                {"first gradient of W_Q and W_K, without over with", LabRule::Side::below, 1, "it is smaller",
                 kGradient},
                {"loss without less loss with", LabRule::Side::above, 0.05, "nats; training suffers", kSuffers}},
      .found =
          {.seen =
               {"Without 1/sqrt(d) a head of width 256 has {entropy at width 256, without%} of the entropy it could "
                "have, with it {entropy at width 256, with%}; its gradients shrink, and after training the loss is "
                "{loss without less loss with} nats higher.",
                "不除以 √d，宽 256 的头的熵只剩最大值的 {entropy at width 256, without%}，除了就有 {entropy at width "
                "256, "
                "with%}；梯度变小，训练后的损失高 {loss without less loss with} 纳特。"},
           .mixed = {"Saturation: entropy {entropy at width 256, without%} of the most without 1/sqrt(d), {entropy at "
                     "width 256, with%} with it; gradient: the softmax's falls to {gradient of the softmax, width 256 "
                     "over width 4, without} of what it was, but the first one of W_Q and W_K is {first gradient of "
                     "W_Q and W_K, without over with} times that with the scale; training: the loss ends {loss "
                     "without less loss with} nats higher.",
                     "饱和：不除以 √d，熵只有最大值的 {entropy at width 256, without%}，除了是 {entropy at width 256, "
                     "with%}；梯度：softmax "
                     "的梯度降到原来的 {gradient of the softmax, width 256 over width 4, without} 倍，但 W_Q 和 W_K "
                     "的第一个梯度是有缩放时的 {first gradient of W_Q and W_K, without over with} 倍；训练：最后损失高 "
                     "{loss without "
                     "less loss with} 纳特。"},
           .not_seen = {"Without 1/sqrt(d) nothing saturated and training did not suffer.",
                        "不除以 √d，既没有饱和，训练也没有变差。"}},
      .measure = measure_scale,
      .parts = {
          {"saturation",
           "饱和",
           {"Without 1/sqrt(d) one key takes all in wide heads.", "不除以 √d，宽头里一个键独占全部权重。"},
           {"At width 256 the weights have {entropy at width 256, without%} of the entropy they could have without the "
            "scale, {entropy at width 256, with%} with it.",
            "宽度 256 时，不缩放的熵是最大值的 {entropy at width 256, without%}，缩放后是 {entropy at width 256, "
            "with%}。"}},
          {"gradient",
           "梯度",
           {"The gradient then vanishes.", "梯度随之消失。"},
           {"That of the softmax itself falls to {gradient of the softmax, width 256 over width 4, without} of what it "
            "is in narrow heads ({gradient of the softmax, width 256 over width 4, with} with the scale); but W_Q and "
            "W_K get {first gradient of W_Q and W_K, without over with} times the gradient they get with it, because "
            "scores that are sqrt(d) times larger multiply it by sqrt(d).",
            "softmax 自身的梯度降到窄头的 {gradient of the softmax, width 256 over width 4, without} 倍（有缩放时是 "
            "{gradient of the softmax, width 256 over width 4, with} 倍）；可是 W_Q 和 W_K 得到的梯度是有缩放时的 "
            "{first gradient of W_Q and W_K, without over with} 倍，因为放大 √d 倍的分数把梯度也乘上了 √d。"}},
          {"training",
           "训练",
           {"Training suffers.", "训练变差。"},
           {"After training the loss is {loss of repeated tokens after training, without} without the scale and {loss "
            "of repeated tokens after training, with} with it.",
            "训练之后，不缩放的损失是 {loss of repeated tokens after training, without}，缩放的是 {loss of repeated "
            "tokens after training, with}。"}}}};
  return lab;
}

}  // namespace qkv::labs

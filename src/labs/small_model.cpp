#include "labs/small_model.h"

#include <algorithm>

#include "core/host_values.h"
#include "inspect/texts/finite.h"
#include "model/families/family.h"
#include "model/initialise.h"
#include "train/step.h"

namespace qkv {

Json config_of(const SmallDecoder& small) {
  return {{"model_type", "llama"},
          {"vocab_size", small.vocabulary},
          {"hidden_size", small.width},
          {"intermediate_size", 2 * small.width},
          {"num_hidden_layers", small.layers},
          {"num_attention_heads", small.heads},
          {"num_key_value_heads", small.heads},
          {"max_position_embeddings", small.context},
          {"initializer_range", small.init},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", false}};
}

std::unique_ptr<Model> fresh_model(const LabContext& lab, ModelSpec spec, uint64_t seed) {
  Device& device = lab.engine.device();
  Weights weights;
  for (const WeightSpec& weight : weight_list(spec)) {
    const Param& made = weights.add(Param(weight.name, device, DType::f32, weight.shape));
    std::vector<float> numbers(static_cast<size_t>(weight.shape.count()));
    initial_numbers(weight, seed, 0, numbers);
    device.upload(made.master().data(), numbers.data(), weight.shape.count() * size_of(DType::f32));
  }
  return Model::make(std::move(spec), std::move(weights));
}

std::unique_ptr<Model> fresh_model(const LabContext& lab, const Json& config, uint64_t seed) {
  return fresh_model(lab, read_spec(Config(config, "the lab's model")), seed);
}

void add_text(TrainBatch& batch, std::span<const int32_t> ids, size_t counted_from) {
  batch.ids.insert(batch.ids.end(), ids.begin(), ids.end() - 1);
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    batch.targets.push_back(i < counted_from ? TrainBatch::kIgnored : ids[i + 1]);
    batch.counted += i < counted_from ? 0 : 1;
  }
  batch.lengths.push_back(static_cast<int32_t>(ids.size()) - 1);
}

void train_model(const LabContext& lab, Model& model, const LabTraining& training) {
  Optimizer optimizer(model.spec(), model.weights(), {.kind = training.optimizer, .decay = 0.01});
  Arena arena(lab.engine.device()), gradients(lab.engine.device());
  const int64_t steps = training.steps;
  const Schedule schedule{.kind = Schedule::Kind::stable_decay,
                          .peak = training.lr,
                          .last = 0.05 * training.lr,
                          .steps = steps,
                          .warmup = std::max<int64_t>(1, steps / 10),
                          .decay = steps / 3};
  for (int64_t step = 0; step < steps; ++step) {
    if (training.eval_every > 0 && step % training.eval_every == 0) training.on_eval(step);
    if (step % 8 == 0) {
      lab.check(training.label + ", step " + std::to_string(step) + " of " + std::to_string(steps));
    }
    const TrainBatch batch = training.batch(step);
    train_step(lab.engine, arena, gradients, model, optimizer, {&batch, 1},
               {.precision = training.precision,
                .loss = {.balance = training.balance},
                .lr = schedule.at(step),
                .clip = 1,
                .step = static_cast<uint64_t>(step),
                .before_update = training.before_update});
  }
  if (training.eval_every > 0) training.on_eval(steps);
}

std::vector<float> row_losses(const Engine& engine, const Model& model, const TrainBatch& batch, Precision precision) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, precision);
  std::vector<float> losses = host_floats(loss_of(cx, model, batch, {}, {}).losses);
  check_finite(model, "a loss", losses);
  return losses;
}

double mean_loss(const Engine& engine, const Model& model, std::span<const TrainBatch> batches) {
  double sum = 0, counted = 0;
  for (const TrainBatch& batch : batches) {
    for (const float loss : row_losses(engine, model, batch)) sum += static_cast<double>(loss);
    counted += static_cast<double>(batch.counted);
  }
  return sum / counted;
}

double share_right(const Engine& engine, const Model& model, const TrainBatch& batch) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  const BatchInput in(cx, batch);
  const std::vector<float> logits = host_floats(model.logits(cx, in.input));
  check_finite(model, "a logit", logits);
  const auto wide = static_cast<size_t>(model.spec().vocabulary);
  int64_t right = 0;
  for (size_t row = 0; row < batch.targets.size(); ++row) {
    if (batch.targets[row] == TrainBatch::kIgnored) continue;
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * wide);
    right += std::max_element(begin, begin + static_cast<std::ptrdiff_t>(wide)) - begin == batch.targets[row] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(batch.counted);
}

}  // namespace qkv

// Small models for labs, created and trained in memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/json.h"
#include "labs/lab.h"
#include "model/model.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace qkv {

// A Llama-style decoder (RoPE, RMS norms, gated feed-forward), as a Hugging Face config.
struct SmallDecoder {
  int64_t vocabulary = 0, width = 64, layers = 2, heads = 4, context = 128;
  double init = 0.02;  // standard deviation of the initial weights
};
Json config_of(const SmallDecoder& small);

// A model with initial weights drawn from the seed.
std::unique_ptr<Model> fresh_model(const LabContext& lab, ModelSpec spec, uint64_t seed);
std::unique_ptr<Model> fresh_model(const LabContext& lab, const Json& config, uint64_t seed);

// Appends a text to a batch; rows from `counted_from` on have the next token as target, earlier ones none.
void add_text(TrainBatch& batch, std::span<const int32_t> ids, size_t counted_from = 0);

struct LabTraining {
  std::string label;  // for the progress line
  int64_t steps = 0;
  double lr = 2e-3;
  OptimizerSpec::Kind optimizer = OptimizerSpec::Kind::muon;
  double balance = 0;  // coefficient of the experts' load-balancing loss
  Precision precision = Precision::bf16();
  std::function<TrainBatch(int64_t step)> batch;
  int64_t eval_every = 0;                                // 0: never; else also before the first and after the last step
  std::function<void(int64_t steps_done)> on_eval = {};  // measures the model
  std::function<void(Context& cx)> before_update = {};   // the weights hold the step's gradients
};
// Learning rate: warm-up over the first tenth of the steps, decay over the last third.
void train_model(const LabContext& lab, Model& model, const LabTraining& training);

// -log p of every row's target; 0 where ignored.
std::vector<float> row_losses(const Engine& engine, const Model& model, const TrainBatch& batch,
                              Precision precision = Precision::f32());
double mean_loss(const Engine& engine, const Model& model, std::span<const TrainBatch> batches);
// Share of the counted rows whose target is the most probable token.
double share_right(const Engine& engine, const Model& model, const TrainBatch& batch);

}  // namespace qkv

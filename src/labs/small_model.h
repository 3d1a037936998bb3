// What labs train: models of a few thousand weights, made and taught in memory.
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

// A decoder of the Llama kind: rotary positions, RMS norms, a gated feed-forward. Config as Hugging Face spells it.
struct SmallDecoder {
  int64_t vocabulary = 0, width = 64, layers = 2, heads = 4, context = 128;
  double init = 0.02;  // deviation of the first weights
};
Json config_of(const SmallDecoder& small);

// With its first weights; the seed decides them and nothing else.
std::unique_ptr<Model> fresh_model(ModelSpec spec, uint64_t seed);
std::unique_ptr<Model> fresh_model(const Json& config, uint64_t seed);

// One more text of a batch: rows from `counted_from` on have to say the next token, the others nothing.
void add_text(TrainBatch& batch, std::span<const int32_t> ids, size_t counted_from = 0);

struct Lessons {
  std::string what;  // for the progress line
  int64_t steps = 0;
  double lr = 2e-3;
  OptimizerSpec::Kind optimizer = OptimizerSpec::Kind::muon;
  Precision precision = Precision::bf16();
  std::function<TrainBatch(int64_t step)> batch;
  int64_t every = 0;                                  // and before the first step and after the last:
  std::function<void(int64_t steps_done)> look = {};  // somebody looks at the model
};
// Warms up over the first tenth and cools down over the last third.
void teach(const LabContext& lab, Model& model, const Lessons& lessons);

// -log p of every row's target, 0 where ignored.
std::vector<float> row_losses(const Engine& engine, const Model& model, const TrainBatch& batch,
                              Precision precision = Precision::f32());
double mean_loss(const Engine& engine, const Model& model, std::span<const TrainBatch> batches);

}  // namespace qkv

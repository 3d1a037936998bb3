// Training through the library: steps of one's own are those of a recipe's Trainer, and a recipe becomes a model.
#include <gtest/gtest.h>
#include <qkv/train.h>

#include <thread>

#include "api/small_model.h"
#include "base/expect_error.h"
#include "train/step.h"
#include "train/trainer.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;
const api::Batch kBatch{.texts = {{1, 5, 9, 4, 5, 9, 2}, {3, 7, 8}}};

TEST(ApiTrainer, StepsAreThoseOfTrainStep) {
  const test::SmallModel small;
  api::Trainer trainer(small.path(), {.device = api::Device::cpu, .threads = 1});

  const Checkpoint start = Checkpoint::open(small.path());
  const Engine engine(kernels::best_table(), {.threads = 1});
  const std::unique_ptr<Model> model = start.model(engine.device(), BlockWeights::decoded);
  choose_trainable(*model, {});
  Optimizer optimizer(model->spec(), model->weights(), {});
  Arena arena(engine.device()), gradients(engine.device());
  const TrainBatch batch{.ids = {1, 5, 9, 4, 5, 9, 2, 3, 7, 8},
                         .targets = {5, 9, 4, 5, 9, 2, -100, 7, 8, -100},
                         .lengths = {7, 3},
                         .counted = 8};
  for (uint64_t step = 0; step < 3; ++step) {
    const StepResult wanted =
        train_step(engine, arena, gradients, *model, optimizer, {&batch, 1}, {.lr = 1e-2, .clip = 1, .step = step});
    const double before = trainer.loss(kBatch);
    const api::StepReport made = trainer.step(kBatch, 1e-2);
    EXPECT_EQ(made.loss, wanted.loss) << step;
    EXPECT_NEAR(made.loss, before, 1e-5);
    EXPECT_EQ(made.grad_norm, wanted.grad_norm);
    EXPECT_EQ(made.step, static_cast<int64_t>(step) + 1);
  }
  EXPECT_LT(trainer.loss(kBatch), 6.4) << "it learns";
  for (const api::Trainer::Weight& weight : trainer.weights()) {
    const Tensor t = model->weights().at(weight.name).master();
    const std::vector<float> values = trainer.weight(weight.name).values;
    EXPECT_TRUE(std::equal(values.begin(), values.end(), t.as<float>())) << weight.name;
  }
}

TEST(ApiTrainer, WhatIsSavedIsWhatWasTrained) {
  const test::SmallModel small;
  api::Trainer trainer(small.path(), {.threads = 1});
  trainer.step(kBatch, 1e-2);
  const double loss = trainer.loss({.texts = {kBatch.texts[0]}});
  const std::string folder = small.beside("saved").string();
  trainer.save(folder);
  const api::Model saved(folder, {.threads = 1});
  EXPECT_TRUE(saved.has_tokenizer()) << "it goes along";
  const api::Likelihood likelihood = saved.likelihood(kBatch.texts[0]);
  EXPECT_NEAR(-likelihood.total / static_cast<double>(likelihood.log_p.size()), loss, 1e-5);
  expect_error([&] { trainer.save(folder); }, {"exists"});
  trainer.step(kBatch, 1e-2);
  EXPECT_EQ(trainer.steps(), 2);
}

TEST(ApiTrainer, SaysWhatIsWrong) {
  const test::SmallModel small;
  api::Trainer trainer(small.path(), {.threads = 1});
  expect_error([&] { trainer.step({}, 1e-3); }, {"no texts"});
  expect_error([&] { trainer.step({.texts = {{1}}}, 1e-3); }, {"nothing to predict"});
  expect_error([&] { trainer.step({.texts = {{}}}, 1e-3); }, {"no tokens"});
  expect_error([&] { trainer.step({.texts = {{1, 608}}}, 1e-3); }, {"608"});
  expect_error([&] { trainer.step({.texts = {{1, 2}}, .targets = {{1}}}, 1e-3); }, {"2 tokens but 1 targets"});
  expect_error([&] { trainer.step({.texts = {{1, 2}}, .sources = {{1}}}, 1e-3); }, {"1 sources"});
  expect_error([&] { trainer.step({.texts = {Ids(513, 1)}}, 1e-3); }, {"513", "512"});
  expect_error([&] { trainer.step(kBatch, NAN); }, {"learning rate"});
  expect_error([&] { api::Trainer(small.path(), {.optimizer = "adam"}); }, {"adam"});
  expect_error([&] { api::Trainer(small.path(), {.frozen = {"no.such.*"}}); }, {"no.such"});
  api::Trainer other = std::move(trainer);
  EXPECT_THROW(trainer.step(kBatch, 1e-3), ClosedError);  // NOLINT(bugprone-use-after-move)
  EXPECT_GT(other.step(kBatch, 1e-3).loss, 0);
}

TEST(ApiTrain, ARecipeBecomesAModelAndGoesOn) {
  const test::SmallModel small;
  const std::string out = small.beside("run").string();
  int64_t heard = 0;
  double last = 0;
  api::TrainOptions options{.recipe = "demo",
                            .out = out,
                            .set = {"steps=4", "batch_tokens=256", "sequence=64", "data.stories=200",
                                    "model.hidden_size=32", "model.intermediate_size=64", "model.num_hidden_layers=1",
                                    "tokenizer.vocab=400", "evaluate.every=2", "schedule.warmup=0"},
                            .threads = 1,
                            .on_step = [&](const api::StepReport& report) {
                              ++heard;
                              EXPECT_EQ(report.of, 4);
                              last = report.loss;
                              return report.step < 3;
                            }};
  const api::Trained stopped = api::train(options);
  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.steps, 3);
  EXPECT_EQ(heard, 3);
  EXPECT_GT(last, 0);
  options.on_step = {};
  expect_error([&] { api::train(options); }, {"run"});
  const api::Trained done = api::train({.out = out, .resume = true, .threads = 1});
  EXPECT_TRUE(done.finished);
  EXPECT_EQ(done.steps, 4);
  EXPECT_EQ(api::Model(done.last, {.threads = 1}).generate("the", {.max_new = 3}).tokens.size(), 3U);
  expect_error([&] { api::train({.recipe = "no-such-recipe", .out = out + "2"}); }, {"no-such-recipe"});
  expect_error([&] { api::train({.recipe = "demo"}); }, {"no folder"});
  EXPECT_FALSE(api::recipes().empty());
}

// Every step has masks of its own: those of its number, as in a recipe's training.
TEST(ApiTrainer, DropoutIsDrawnAnewForEveryStep) {
  const TempFolder folder;
  const std::string path = (folder.path() / "model").string();
  api::new_model(R"({"model_type": "gpt2", "vocab_size": 32, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2,
                     "resid_pdrop": 0.5, "embd_pdrop": 0, "attn_pdrop": 0})",
                 path, 4);
  const auto losses = [&](uint64_t seed) {
    api::Trainer trainer(path, {.seed = seed, .device = api::Device::cpu, .threads = 1});
    std::vector<double> all;
    for (int step = 0; step < 3; ++step) all.push_back(trainer.step(kBatch, 0).loss);  // the weights stay
    return all;
  };
  const std::vector<double> some = losses(1);
  EXPECT_NE(some[0], some[1]);
  EXPECT_NE(some[1], some[2]);
  EXPECT_EQ(losses(1), some) << "a function of the seed";
  EXPECT_NE(losses(2), some);
}

}  // namespace
}  // namespace qkv

// Training on a device whose memory the host cannot touch: the bits, checkpoints and resuming of the host.
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "core/host_values.h"
#include "model/checkpoint/checkpoint.h"
#include "support/guarded_device.h"
#include "support/pass.h"
#include "support/some_ids.h"
#include "train/run_folder_support.h"

namespace qkv {
namespace train_device_test {

using test::GuardedEngine, test::on_both;
using Kind = OptimizerSpec::Kind;

struct Learner {
  Learner(const Engine& on, const std::string& family, const OptimizerSpec& rule, Precision in = Precision::bf16())
      : engine(on),
        precision(in),
        start(Checkpoint::open(test::golden(family))),
        model(start.model(engine.device())),
        optimizer(model->spec(), model->weights(), rule),
        arena(engine.device()),
        gradients(engine.device()) {}

  TrainBatch batch(int64_t micro) const {
    const auto seed = static_cast<uint32_t>(17 * counters.step + micro);
    TrainBatch made{.ids = test::some_ids(9, seed, model->spec().vocabulary), .lengths = {9}, .counted = 9};
    made.targets = test::some_ids(9, seed + 5, model->spec().vocabulary);
    if (model->spec().has_source()) {
      made.source_ids = test::some_ids(7, seed + 9, model->spec().vocabulary);
      made.source_lengths = {7};
    }
    return made;
  }
  void steps(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<TrainBatch> batches{batch(0), batch(1)};
      losses.push_back(train_step(engine, arena, gradients, *model, optimizer, batches,
                                  {.precision = precision, .lr = 1e-2, .clip = 1, .step = counters_step()})
                           .loss);
      ++counters.step;
    }
  }
  uint64_t counters_step() const { return static_cast<uint64_t>(counters.step); }
  void save(RunFolder& run) const { run.save(*model, start.config, optimizer, counters, false); }
  bool load(const RunFolder& run) { return run.load_newest(*model, optimizer, counters); }
  std::map<std::string, std::vector<float>> state() const {
    std::map<std::string, std::vector<float>> all;
    for (const auto& [name, weight] : model->weights()) all[name] = host_floats(weight.master());
    for (const Optimizer::State& kept : optimizer.states()) all[kept.name] = host_floats(kept.tensor);
    return all;
  }

  const Engine& engine;
  Precision precision;
  Checkpoint start;
  std::unique_ptr<Model> model;
  Optimizer optimizer;
  Arena arena, gradients;
  TrainCounters counters;
  std::vector<double> losses;
};

struct How {
  const char* family;
  OptimizerSpec rule;
  Precision precision;
};
class DeviceTraining : public testing::TestWithParam<How> {};

TEST_P(DeviceTraining, GivesTheBitsOfTheHost) {
  const auto [device, host] = on_both([&](const Engine& engine) {
    Learner run(engine, GetParam().family, GetParam().rule, GetParam().precision);
    run.steps(2);
    return std::pair{run.losses, run.state()};
  });
  EXPECT_TRUE(device == host);
}

INSTANTIATE_TEST_SUITE_P(Goldens, DeviceTraining,
                         testing::Values(How{"gpt2", {}, Precision::bf16()},
                                         How{"llama", {.kind = Kind::muon}, Precision::bf16()},
                                         How{"mixtral", {.kind = Kind::sgd, .momentum = 0.9}, Precision::f32()},
                                         How{"marian", {}, Precision::bf16()}),
                         [](const auto& how) { return std::string(how.param.family); });

TEST(DeviceRuns, GoOnOnTheHostAndBack) {
  const TempFolder temp;
  const Engine host(kernels::ref::table(), {.threads = 1});
  GuardedEngine device;
  Learner whole(host, "llama", {});
  whole.steps(6);
  RunFolder folder = RunFolder::create(temp.path() / "run", test::some_recipe());
  const auto part = [&](const Engine& engine) {
    Learner run(engine, "llama", {});
    run.load(folder);
    run.steps(2);
    run.save(folder);
    folder.wait();
    return run.state();
  };
  part(device.engine);
  part(host);
  EXPECT_TRUE(part(device.engine) == whole.state());
}

TEST(DeviceRuns, GoOnExactlyWhereTheyStood) {
  for (const Kernels* table : test::fastest_tables()) {
    SCOPED_TRACE(table->name);
    const TempFolder temp;
    const Engine engine(*table, {.threads = 1});
    Learner whole(engine, "llama", {}), first(engine, "llama", {}), second(engine, "llama", {});
    whole.steps(4);
    first.steps(2);
    RunFolder folder = RunFolder::create(temp.path() / "run", test::some_recipe());
    first.save(folder);
    folder.wait();
    ASSERT_TRUE(second.load(folder));
    second.steps(2);
    EXPECT_TRUE(second.state() == whole.state());
    EXPECT_EQ(second.losses, (std::vector<double>{whole.losses[2], whole.losses[3]}));
  }
}

// Passes of several threads take turns: what ran between two of them would run within another's.
TEST(DeviceRuns, RunEveryKernelWithinAPass) {
  for (const char* family : {"gpt2", "mixtral"}) {
    GuardedEngine device;
    Learner run(device.engine, family, {});
    run.steps(1);
    EXPECT_EQ(device.device.outside_pass, 0) << family;
  }
}

// A GPU that fails throws at the next download; nothing that is destroyed afterwards may.
TEST(DeviceRuns, ALostDeviceLeavesTheLastCheckpoint) {
  const TempFolder temp;
  const Engine host(kernels::ref::table(), {.threads = 1});
  std::map<std::string, std::vector<float>> saved;
  {
    GuardedEngine device;
    RunFolder folder = RunFolder::create(temp.path() / "run", test::some_recipe());
    Learner run(device.engine, "llama", {});
    run.steps(2);
    run.save(folder);
    saved = run.state();
    for (const int64_t downloads : {0, 1}) {  // a step makes two: of losses and of the norm of gradients
      device.device.lost_after = downloads;
      expect_error([&] { run.steps(1); }, {"lost"});
      expect_error([&] { run.save(folder); }, {"lost"});
    }
  }
  Learner after(host, "llama", {});
  ASSERT_TRUE(after.load(RunFolder::open(temp.path() / "run")));
  EXPECT_EQ(after.counters.step, 2);
  EXPECT_TRUE(after.state() == saved);
}

// --- data ------------------------------------------------------------------------------------------------------------

// Good for two steps; then it throws, or has a token that no table knows.
class GoodForTwoSteps final : public TrainData {
 public:
  explicit GoodForTwoSteps(bool throws) : throws_(throws) {}
  TrainBatch micro_batch(int64_t step, int64_t) const override {
    QKV_CHECK(step < 2 || !throws_, "the text of step ", step, " is damaged", Hint("this is a test"));
    TrainBatch made{.ids = test::some_ids(16, 1), .targets = test::some_ids(16, 2), .lengths = {16}, .counted = 16};
    if (step == 2) made.ids[5] = 1 << 30;
    return made;
  }
  int64_t validation_batches() const override { return 0; }
  TrainBatch validation_batch(int64_t) const override { return {}; }

 private:
  bool throws_;
};

// A step's data is made while the device works on the step before, which is finished all the same.
TEST(DeviceData, IsRefusedWhenItsStepBegins) {
  for (const bool throws : {false, true}) {
    GuardedEngine device;
    Recipe recipe = test::some_recipe();
    recipe.batch_tokens = 16;
    recipe.steps = 5;
    const GoodForTwoSteps data(throws);
    const auto model = Checkpoint::open(test::golden("llama")).model(device.device);
    Trainer trainer(device.engine, recipe, *model, data);
    int64_t steps = 0;
    TrainHooks hooks;
    hooks.on_step = [&](const StepReport& report) { steps += std::isfinite(report.result.grad_norm) ? 1 : 0; };
    if (throws) {
      expect_error([&] { trainer.run(hooks); }, {"step 2", "damaged"});
    } else {
      expect_error([&] { trainer.run(hooks); }, {"ids[5]", "1073741824"});
    }
    EXPECT_EQ(steps, 2);
  }
}

}  // namespace train_device_test
}  // namespace qkv

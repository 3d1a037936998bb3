// Training on a device whose memory the host cannot touch: the bits, checkpoints and resuming of the host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "core/host_values.h"
#include "model/checkpoint/checkpoint.h"
#include "support/fresh_model.h"
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

// --- the plan --------------------------------------------------------------------------------------------------------

TEST(DevicePlan, IsHeldAgainstTheMemoryOfTheDevice) {
  Recipe recipe = test::some_recipe();
  recipe.batch_tokens = 16;
  const test::FewTokens data;
  GuardedEngine device;
  const auto model = Checkpoint::open(test::golden("llama")).model(device.device);
  device.device.free = int64_t{1} << 33;
  const Trainer::Memory plan = Trainer::plan(device.engine, recipe, *model, data);
  EXPECT_EQ(plan.free, device.device.free);
  EXPECT_GT(plan.activations, 16 * model->spec().width * size_of(DType::f32)) << "a dry run was made";
  EXPECT_EQ(plan.checkpoint(), 3 * plan.weights) << "AdamW keeps two tensors of each weight";
  device.device.free = plan.weights;
  const Trainer::Memory refused = Trainer::plan(device.engine, recipe, *model, data);
  EXPECT_GT(refused.total(), refused.free);
  EXPECT_LT(refused.activations, plan.activations) << "nothing is tried that cannot fit";
}

TEST(DevicePlan, IsWhatARunTakesOfTheDevice) {
  GuardedEngine device;
  Recipe recipe = test::some_recipe();
  recipe.batch_tokens = 16;
  const test::FewTokens data;
  const auto model = Checkpoint::open(test::golden("llama")).model(device.device);
  const Trainer::Memory plan = Trainer::plan(device.engine, recipe, *model, data);
  Trainer trainer(device.engine, recipe, *model, data);
  recipe.steps = 1;
  trainer.run({});
  EXPECT_EQ(trainer.arena_peak(), plan.activations);
}

// One of several ranks, on its own: what it sends is what it gets.
class Alike final : public Comm {
 public:
  Alike(int rank, int size) : rank_(rank), size_(size) {}
  const char* name() const override { return "alike"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void abort_all() override { FAIL() << "there is nobody else"; }
  void barrier() override {}
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return std::vector(static_cast<size_t>(size_), std::vector(mine.begin(), mine.end()));
  }
  void exchange(std::span<const std::span<const std::byte>> send,
                std::span<const std::span<std::byte>> receive) override {
    const std::span<const std::byte> own = send[static_cast<size_t>(rank_)];
    for (const auto& to : receive) std::copy_n(own.begin(), std::min(own.size(), to.size()), to.begin());
  }

 private:
  int rank_, size_;
};

// One large table but for a little, so that one rank owns almost all of it; or tables and layers alike. Without tables of angles.
const char* const kOneTable = R"({"model_type": "gpt2", "vocab_size": 5000, "n_positions": 16, "n_embd": 8, "n_head": 2,
                                  "n_layer": 1, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
const char* const kLayers = R"({"model_type": "gpt2", "vocab_size": 200, "n_positions": 16, "n_embd": 16, "n_head": 2,
                                "n_layer": 3, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0,
                                "tie_word_embeddings": false})";

Recipe recipe_of(int64_t micro_batches) {
  Recipe recipe = test::some_recipe();
  recipe.sequence = 16;
  recipe.batch_tokens = 16 * micro_batches;
  recipe.micro_batches = micro_batches;
  recipe.steps = 2;
  return recipe;
}

// What two steps take of the device, against the plan.
Trainer::Memory expect_taken_as_planned(Comm& comm, const Recipe& recipe, const char* config) {
  SCOPED_TRACE(fmt::format("rank {} of {}, {} micro-batches, zero {}, {} frozen, recompute {}", comm.rank(),
                           comm.size(), recipe.micro_batches, recipe.zero, recipe.frozen.size(), recipe.recompute));
  GuardedEngine device;
  const test::FewTokens data;
  const int64_t before = device.device.taken;
  const auto model = test::fresh_model(parse_json(config, "test"), device.device);
  choose_trainable(*model, recipe.frozen);
  const Trainer::Memory plan = Trainer::plan(device.engine, recipe, *model, data, comm);
  Trainer trainer(device.engine, recipe, *model, data, comm);
  trainer.run({});
  const int64_t held = device.device.taken;
  trainer.optimizer().gather_states();
  EXPECT_EQ(device.device.taken, held) << "what is gathered for a checkpoint lies on the host";
  const int64_t taken = device.device.most - before;
  EXPECT_LT(std::abs(taken - plan.total()), 1024) << taken << " taken, " << plan.total() << " planned";
  return plan;
}

TEST(DevicePlan, CountsEveryByteOfARun) {
  for (const int64_t micro_batches : {1, 2, 4})
    expect_taken_as_planned(self_comm(), recipe_of(micro_batches), kOneTable);
  for (const int rank : {0, 3}) {
    Alike comm(rank, 4);
    for (const int64_t micro_batches : {4, 16}) expect_taken_as_planned(comm, recipe_of(micro_batches), kOneTable);
  }
  for (const bool recompute : {false, true}) {
    for (const int64_t micro_batches : {2, 8}) {
      Recipe recipe = recipe_of(micro_batches);
      recipe.recompute = recompute;
      expect_taken_as_planned(self_comm(), recipe, kLayers);
    }
  }
}

Trainer::Memory planned(const Recipe& recipe, const char* config, Comm& comm = self_comm()) {
  GuardedEngine device;
  const auto model = test::fresh_model(parse_json(config, "test"), device.device);
  return Trainer::plan(device.engine, recipe, *model, test::FewTokens(), comm);
}

// What a run does not keep needs no memory.
TEST(DevicePlan, CountsOptimiserTensorsOnlyOfWeightsThatThisRankUpdates) {
  const int64_t whole = planned(recipe_of(2), kLayers).states;
  Recipe recipe = recipe_of(2);
  recipe.frozen = {"embed", "head*", "layers.0.*"};
  const int64_t trained = expect_taken_as_planned(self_comm(), recipe, kLayers).states;
  EXPECT_LT(trained, whole * 2 / 3);
  for (const int64_t zero : {1, 2}) {
    recipe = recipe_of(4);
    recipe.zero = zero;
    int64_t all = 0;
    for (const int rank : {0, 1, 2, 3}) {
      Alike comm(rank, 4);
      const Trainer::Memory plan = planned(recipe, kLayers, comm);
      all += plan.states;
      EXPECT_LT(plan.states, whole / 2);
      EXPECT_EQ(plan.states + plan.gathered, rank == 0 ? whole : plan.states) << "the first rank writes checkpoints";
    }
    EXPECT_EQ(all, whole);
    Alike first(0, 4);
    expect_taken_as_planned(first, recipe, kLayers);
  }
}

// One sum less than levels of the tree, and what backward is adding to.
TEST(DevicePlan, HoldsOneSumForEachDoublingOfMicroBatches) {
  const int64_t once = planned(recipe_of(1), kLayers).gradients;
  int64_t sums = 1;
  for (const int64_t micro_batches : {2, 4, 8, 16}) {
    const int64_t gradients = planned(recipe_of(micro_batches), kLayers).gradients;
    EXPECT_GT(gradients, sums * once) << micro_batches;
    EXPECT_LT(gradients, sums * once + once / 3) << micro_batches << ": one table more";
    ++sums;
  }
}

// Sixteen texts of sixteen tokens in a step.
class SixteenTexts final : public TrainData {
 public:
  explicit SixteenTexts(int64_t micro_batches) : texts_(16 / micro_batches) {}
  TrainBatch micro_batch(int64_t, int64_t) const override {
    TrainBatch made{
        .ids = test::some_ids(16 * texts_, 1), .targets = test::some_ids(16 * texts_, 2), .counted = 16 * texts_};
    made.lengths.assign(static_cast<size_t>(texts_), 16);
    return made;
  }
  int64_t validation_batches() const override { return 0; }
  TrainBatch validation_batch(int64_t) const override { return {}; }

 private:
  int64_t texts_;
};

// What is said to need less is what its own plan says, and no other number of micro-batches needs less still.
TEST(DevicePlan, NamesTheMicroBatchesThatNeedLeast) {
  const std::string narrow = R"({"model_type": "gpt2", "vocab_size": 100, "n_positions": 16, "n_embd": 8, "n_head": 2,
                                 "n_layer": 4, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
  GuardedEngine device;
  for (const std::string& config : {std::string(kLayers), narrow}) {
    const auto model = test::fresh_model(parse_json(config, "test"), device.device);
    const auto plan_of = [&](int64_t micro_batches, bool recompute) {
      Recipe recipe = recipe_of(micro_batches);
      recipe.batch_tokens = 256;
      recipe.recompute = recompute;
      return Trainer::plan(device.engine, recipe, *model, SixteenTexts(micro_batches)).total();
    };
    std::map<std::string, int64_t> needs{{"recompute=true", 0}};
    for (const int64_t m : {1, 2, 4, 8, 16}) {
      needs["micro_batches=" + std::to_string(m)] = plan_of(m, false);
      needs["micro_batches=" + std::to_string(m) + " with recompute=true"] = plan_of(m, true);
    }
    const auto least = [&](bool recompute) {
      int64_t found = INT64_MAX;
      for (const int64_t m : {1, 2, 4, 8, 16}) found = std::min(found, plan_of(m, recompute));
      return found;
    };
    for (const int64_t m : {1, 2, 16}) {
      Recipe recipe = recipe_of(m);
      recipe.batch_tokens = 256;
      needs["recompute=true"] = plan_of(m, true);
      bool divided = false, both = false;
      for (const Trainer::Alternative& one : Trainer::alternatives(device.engine, recipe, *model, SixteenTexts(m))) {
        ASSERT_TRUE(needs.contains(one.change)) << one.change;
        EXPECT_EQ(one.total, needs[one.change]) << one.change;
        EXPECT_LT(one.total, plan_of(m, false)) << one.change;
        const bool again = one.change.find("recompute") != std::string::npos;
        if (one.change.starts_with("micro")) {
          EXPECT_EQ(one.total, least(again)) << one.change;
        }
        (again ? both : divided) |= one.change.starts_with("micro");
      }
      EXPECT_EQ(divided, least(false) < plan_of(m, false)) << m;
      EXPECT_EQ(both, least(true) < plan_of(m, false)) << m;
    }
  }
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

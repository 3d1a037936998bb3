// The plan of a run against what it takes of a device that counts every byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/dtype.h"
#include "model/checkpoint/checkpoint.h"
#include "support/fresh_model.h"
#include "support/guarded_device.h"
#include "support/some_ids.h"
#include "train/run_folder_support.h"

namespace qkv {
namespace train_device_plan_test {

using test::GuardedEngine;

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

}  // namespace train_device_plan_test
}  // namespace qkv

// When a run stops for want of improvement, and which step was its best.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"

namespace qkv {
namespace trainer_test {

// One validation batch for each evaluation, in the order given. Training batches do not matter: the rate is 0.
class Scripted : public TrainData {
 public:
  explicit Scripted(std::vector<TrainBatch> evaluations) : evaluations_(std::move(evaluations)) {}
  TrainBatch micro_batch(int64_t, int64_t) const override { return evaluations_.front(); }
  int64_t validation_batches() const override { return 1; }
  TrainBatch validation_batch(int64_t) const override { return evaluations_.at(next_++); }

 private:
  std::vector<TrainBatch> evaluations_;
  mutable size_t next_ = 0;
};

class TrainerTest : public testing::Test {
 protected:
  TrainBatch batch(uint32_t seed) const {
    return {.ids = test::some_ids(12, seed, model_->spec().vocabulary),
            .targets = test::some_ids(12, seed + 100, model_->spec().vocabulary),
            .lengths = {12},
            .counted = 12};
  }
  Recipe recipe() const {
    Recipe made;
    made.bf16 = false;
    made.steps = 20;
    made.schedule = {.kind = Schedule::Kind::constant, .peak = 0};
    made.evaluate.every = 1;
    return made;
  }
  // Four batches, that with the lowest loss first.
  std::vector<TrainBatch> by_loss() {
    const Recipe none = recipe();
    std::vector<std::pair<double, TrainBatch>> found;
    for (uint32_t n = 0; n < 4; ++n) {
      const Scripted data({batch(n), batch(n)});
      found.emplace_back(Trainer(engine_, none, *model_, data).evaluate().loss, batch(n));
    }
    std::ranges::sort(found, {}, &std::pair<double, TrainBatch>::first);
    std::vector<TrainBatch> batches;
    for (const auto& [loss, one] : found) batches.push_back(one);
    return batches;
  }

  Engine engine_{kernels::best_table(), {.threads = 1}};
  std::unique_ptr<Model> model_ = Checkpoint::open(test::golden("llama")).model();
};

TEST_F(TrainerTest, PatienceCountsFromTheLastImprovement) {
  const std::vector<TrainBatch> batches = by_loss();
  struct Case {
    std::vector<size_t> script;  // which batch each evaluation has; 0 has the lowest loss
    int64_t patience, stops_at, best_step;
  };
  const Case cases[] = {
      {{2, 3, 0, 1, 3}, 2, 5, 3},     // worse, better, worse, worse
      {{3, 2, 1, 0, 1, 2}, 2, 6, 4},  // better all along
      {{0, 1, 2}, 2, 3, 1},           // never better
      {{1, 2, 0, 2}, 1, 2, 1},
  };
  for (const Case& c : cases) {
    std::vector<TrainBatch> evaluations;
    for (const size_t n : c.script) evaluations.push_back(batches[n]);
    const Scripted data(evaluations);
    Recipe recipe = this->recipe();
    recipe.evaluate.patience = c.patience;
    Trainer trainer(engine_, recipe, *model_, data);
    std::vector<int64_t> best_steps;
    double best_loss = 0;
    const StopReason why = trainer.run({.on_evaluation = [&](const EvalResult& result, bool best) {
      if (!best) return;
      best_steps.push_back(result.step);
      best_loss = result.loss;
    }});
    EXPECT_EQ(why, StopReason::no_improvement);
    EXPECT_EQ(trainer.counters().step, c.stops_at) << "stopped after another step";
    EXPECT_EQ(trainer.counters().best_step, c.best_step) << "another step was called the best";
    EXPECT_EQ(trainer.counters().best_step, best_steps.back());
    EXPECT_EQ(trainer.counters().best, best_loss);
  }
}

}  // namespace trainer_test
}  // namespace qkv

// A run that goes on with other keys, and one whose snapshots go on with more steps.
#include <gtest/gtest.h>
#include <qkv/train.h>

#include "api/small_model.h"
#include "base/expect_error.h"
#include "inspect/watch/snapshot.h"

namespace qkv {
namespace resuming_test {

namespace fs = std::filesystem;

class Resuming : public testing::Test {
 protected:
  api::TrainOptions options(const char* out, std::vector<std::string> more) const {
    std::vector<std::string> set{"batch_tokens=256",           "sequence=64",
                                 "data.stories=200",           "model.hidden_size=32",
                                 "model.intermediate_size=64", "model.num_hidden_layers=1",
                                 "tokenizer.vocab=400",        "schedule.kind=constant",
                                 "schedule.warmup=0",          "schedule.decay=0",
                                 "evaluate.samples=0"};
    set.insert(set.end(), more.begin(), more.end());
    return {.recipe = "demo", .out = out_of(out), .set = set, .threads = 1};
  }
  std::string out_of(const char* name) const { return (temp_.path() / name).string(); }
  api::Trained resume(const char* out, std::vector<std::string> set) const {
    return api::train({.out = out_of(out), .set = std::move(set), .resume = true, .threads = 1});
  }
  std::string weights(const char* out) const {
    return read_file(temp_.path() / out / "last" / "model.safetensors", 1 << 26);
  }
  Json recipe(const char* out) const {
    return parse_json(read_file(temp_.path() / out / "recipe.json", 1 << 20), "recipe.json");
  }
  void edit_recipe(const char* out, const std::function<void(Json& recipe)>& change) const {
    Json json = recipe(out);
    change(json);
    temp_.write(fs::path(out) / "recipe.json", json.dump());
  }

  TempFolder temp_;
};

TEST_F(Resuming, SetGivesMoreStepsWithTheSameBits) {
  api::train(options("whole", {"steps=8"}));
  api::train(options("run", {"steps=5"}));
  EXPECT_EQ(resume("run", {"steps=8"}).steps, 8);
  EXPECT_EQ(recipe("run")["steps"], 8);
  EXPECT_EQ(weights("run"), weights("whole"));
}

TEST_F(Resuming, WhatIsRefusedChangesNothing) {
  api::train(options("run", {"steps=3"}));
  const Json before = recipe("run");
  expect_error([&] { resume("run", {"model.hidden_size=16"}); }, {"model.hidden_size: 16, was 32"});
  expect_error([&] { resume("run", {"seed=9"}); }, {"seed: 9, was 1"});
  expect_error([&] { resume("run", {"stps=9"}); }, {"unknown key 'stps'"});
  expect_error([&] { resume("run", {"steps=2"}); }, {"has done 3 steps but its recipe has 2"});
  std::string prompt;  // longer than a sample
  for (int i = 0; i < 100; ++i) prompt += "the ";
  expect_error(
      [&] {
        resume("run", {"steps=9", "evaluate.samples=1", "evaluate.prompts=[\"" + prompt + "\"]"});
      },
      {"evaluate.prompts"});
  expect_error([&] { api::train({.out = out_of("run"), .data = {"a.txt"}, .resume = true}); }, {"a.txt"});
  EXPECT_EQ(recipe("run"), before);
}

TEST_F(Resuming, AWatchedRunIsGivenMoreSteps) {
  api::train(options("whole", {"steps=9", "watch=true"}));
  api::train(options("run", {"steps=4", "watch=true"}));
  const WatchPlan first = WatchFolder::open(out_of("run")).plan();
  EXPECT_EQ(first.steps.back(), 4);
  resume("run", {"steps=9"});
  const WatchFolder folder = WatchFolder::open(out_of("run")), whole = WatchFolder::open(out_of("whole"));
  EXPECT_EQ(folder.plan().tokens, first.tokens);
  EXPECT_EQ(folder.plan().counted, whole.plan().counted);
  EXPECT_EQ(folder.plan().steps.back(), 9);
  EXPECT_TRUE(
      std::includes(folder.plan().steps.begin(), folder.plan().steps.end(), first.steps.begin(), first.steps.end()));
  EXPECT_EQ(folder.steps(), folder.plan().steps);
  EXPECT_EQ(folder.read(9).sketches, whole.read(9).sketches);
  EXPECT_EQ(weights("run"), weights("whole"));
}

// Where an older version counted the tokens of the run's steps alone, its snapshots go on with that number.
TEST_F(Resuming, SnapshotsGoOnWithTheTokensTheyCounted) {
  api::train(options("run", {"steps=4", "watch=true"}));
  const fs::path file = temp_.path() / "run" / "watch" / "watch.json";
  Json plan = parse_json(read_file(file, 1 << 20), "watch.json");
  plan["counted"] = 1;  // after its first step
  temp_.write("run/watch/watch.json", plan.dump());
  const std::optional<Error> error = error_of([&] { resume("run", {"steps=6"}); });
  ASSERT_TRUE(error);  // the tokens of that step are others than those of the plan
  EXPECT_NE(error->message().find("tokens"), std::string::npos) << error->what();
}

// With nothing held out no evaluation is counted, shown or logged.
TEST_F(Resuming, PatienceNeedsSomethingHeldOut) {
  int64_t evaluations = 0;
  api::TrainOptions with = options("run", {"steps=6", "data.validation=0", "evaluate.every=1", "evaluate.patience=2"});
  with.on_evaluation = [&](const api::EvaluationReport&) { ++evaluations; };
  const api::Trained trained = api::train(with);
  EXPECT_EQ(trained.steps, 6);
  EXPECT_TRUE(trained.finished);
  EXPECT_EQ(evaluations, 0);
  EXPECT_EQ(read_file(temp_.path() / "run" / "log.jsonl", 1 << 20).find("val_loss"), std::string::npos);
}

}  // namespace resuming_test
}  // namespace qkv

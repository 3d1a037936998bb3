// What a training writes beside itself: where that does not fit, the training goes on.
#include "api/training/train_reports.h"

#include <gtest/gtest.h>

#include <set>

#include "api/training/train_watch.h"
#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "model/checkpoint/checkpoint.h"
#include "support/guarded_device.h"
#include "train/run_folder_support.h"

namespace qkv {
namespace train_reports_test {

TEST(TrainReports, SayWhichSamplesDoNotFit) {
  test::GuardedEngine device;
  Recipe recipe = test::some_recipe();
  recipe.sequence = 16;
  recipe.evaluate.samples = 2;
  const test::FewTokens data;
  const auto model = Checkpoint::open(test::golden("llama")).model(device.device, BlockWeights::decoded);
  Trainer trainer(device.engine, recipe, *model, data);
  const TrainReports reports(device.engine, recipe, trainer, data, (test::golden("tokenizers") / "unigram").string());
  EXPECT_EQ(reports.samples(*model).size(), 2U);
  device.device.free = 0;
  testing::internal::CaptureStderr();
  EXPECT_TRUE(reports.samples(*model).empty());
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* part : {"no samples", "needs", "0.00 GiB are free on guarded"}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

// The prompt may be the same: each sample is drawn with a seed of its own.
TEST(TrainReports, SamplesOfOnePromptDiffer) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  Recipe recipe = test::some_recipe();
  recipe.sequence = 32;
  recipe.evaluate.samples = 4;
  const test::FewTokens data;
  const auto model = Checkpoint::open(test::golden("llama")).model(engine.device(), BlockWeights::decoded);
  Trainer trainer(engine, recipe, *model, data);
  const TrainReports reports(engine, recipe, trainer, data, (test::golden("tokenizers") / "unigram").string());
  const std::vector<std::string> texts = reports.samples(*model);
  ASSERT_EQ(texts.size(), 4U);
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), 4U) << texts[0];
  EXPECT_EQ(reports.samples(*model), texts) << "the same at every evaluation";
}

// A run that goes on has watched before: its seconds, and so its share of the training, go on too.
TEST(TrainWatch, SecondsGoOnWhereARunIsResumed) {
  const TempFolder folder;
  const Engine engine(kernels::best_table(), {.threads = 1});
  Recipe recipe = test::some_recipe();
  recipe.sequence = 16;
  recipe.batch_tokens = 64;
  recipe.micro_batches = 1;
  const test::FewTokens data;
  const auto model = Checkpoint::open(test::golden("llama")).model(engine.device(), BlockWeights::decoded);
  {
    TrainWatch watch(folder.path(), engine, recipe, *model, data);
    watch.begin({});
    watch.wait();
  }
  WatchFolder written = WatchFolder::open(folder.path());
  Snapshot first = written.read(0);
  first.watch_seconds = 1000;
  written.write(first);
  written.wait();
  TrainWatch watch(folder.path(), engine, recipe, *model, data);
  const TrainCounters counters{.step = 0, .seconds = 4000};
  watch.begin(counters);
  EXPECT_GE(watch.end(counters).seconds, 1000);
  EXPECT_GE(watch.share(counters), 0.25);
}

// The hint names changes that were planned and fit; where none does, how little it can be.
TEST(TrainReports, SayWhatWouldFit) {
  const Trainer::Memory memory{.weights = 3'000'000'000, .gradients = 4'000'000'000, .free = 6'000'000'000};
  test::GuardedEngine device;
  const auto refused = [&](const std::vector<Trainer::Alternative>& all, std::initializer_list<const char*> parts) {
    const auto error = error_of([&] { check_memory(memory, device.device, [&] { return all; }); });
    ASSERT_TRUE(error.has_value());
    for (const char* part : parts) EXPECT_NE(std::string(error->what()).find(part), std::string::npos) << error->what();
    EXPECT_EQ(error->hint().find("recompute=true needs 6.50 GB,") == std::string::npos,
              all.size() != 2 || all[0].total < 6'000'000'000);
  };
  refused({{"micro_batches=2", 5'500'000'000}, {"recompute=true", 6'500'000'000}},
          {"needs 7.00 GB", "6.00 GB are free on guarded", "micro_batches=2 needs 5.50 GB"});
  refused({{"micro_batches=2", 6'900'000'000}, {"recompute=true", 6'500'000'000}},
          {"recompute=true needs 6.50 GB, which is too much as well", "fewer batch_tokens"});
  refused({}, {"fewer batch_tokens, a smaller model or frozen weights need less"});
}

}  // namespace train_reports_test
}  // namespace qkv

// What a training writes beside itself: where that does not fit, the training goes on.
#include "api/training/train_reports.h"

#include <gtest/gtest.h>

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

}  // namespace train_reports_test
}  // namespace qkv

// What a training writes beside itself: where that does not fit, the training goes on.
#include "api/training/train_reports.h"

#include <gtest/gtest.h>

#include "model/checkpoint/checkpoint.h"
#include "support/guarded_device.h"
#include "support/some_ids.h"
#include "train/run_folder_support.h"

namespace qkv {
namespace train_reports_test {

class FewTokens final : public TrainData {
 public:
  TrainBatch micro_batch(int64_t, int64_t) const override {
    return {.ids = test::some_ids(16, 1), .targets = test::some_ids(16, 2), .lengths = {16}, .counted = 16};
  }
  int64_t validation_batches() const override { return 0; }
  TrainBatch validation_batch(int64_t) const override { return {}; }
};

TEST(TrainReports, SayWhichSamplesDoNotFit) {
  test::GuardedEngine device;
  Recipe recipe = test::some_recipe();
  recipe.sequence = 16;
  recipe.evaluate.samples = 2;
  const FewTokens data;
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

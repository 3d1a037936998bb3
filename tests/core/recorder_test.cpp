// Passes are run, recorded and replayed; whatever happens in between, a result is that of running the pass.
#include <gtest/gtest.h>

#include "core/engine.h"
#include "core/host_values.h"
#include "core/pass_recorder.h"
#include "support/recording_device.h"

namespace qkv {
namespace {

class RecorderTest : public testing::Test {
 protected:
  // x, uploaded, times two, plus what lasts.
  float pass(float x, bool uploads = false) {
    arena_.rewind({});
    Context cx = engine_.context(arena_, Precision::f32());
    const Tensor in = cx.upload(std::vector<float>{x}, {1});
    const Tensor out = recorder_.run({arena_.used()}, [&] {
      ++runs_;
      const Tensor y = cx.make({1}, DType::f32);
      cx.kernels.copy(cx.exec, {.y = y, .x = in, .factor = 2});
      const std::vector<float> five{5};
      const Tensor more = uploads ? cx.upload(five, {1}) : cx.lasting(five, {1});
      cx.kernels.add(cx.exec, {.y = y, .a = y, .b = more});
      return y;
    });
    return host_floats(out)[0];
  }
  void release_some() { const Storage gone(device_, DType::f32, 16); }

  test::RecordingDevice device_;
  Engine engine_{test::recording_kernels(), {.threads = 1, .device = &device_}};
  Arena arena_{device_};
  PassRecorder recorder_{device_};
  int runs_ = 0;
};

TEST_F(RecorderTest, ReplaysOnNewInputs) {
  for (int i = 0; i < 6; ++i) EXPECT_EQ(pass(static_cast<float>(i)), 2 * static_cast<float>(i) + 5);
  EXPECT_EQ(runs_, 2);  // run and recorded
  EXPECT_EQ(device_.replayed, 5);
}

TEST_F(RecorderTest, RunsWhatCannotBeRecorded) {
  for (int i = 0; i < 600; ++i) EXPECT_EQ(pass(static_cast<float>(i), true), 2 * static_cast<float>(i) + 5);
  EXPECT_EQ(runs_, 600);
  EXPECT_EQ(device_.stopped, 1);  // not tried again
  EXPECT_EQ(device_.replayed, 0);
}

TEST_F(RecorderTest, RecordsAnewWhenMemoryWasReleased) {
  for (int i = 0; i < 4; ++i) pass(1);
  release_some();
  EXPECT_EQ(pass(3), 11);
  EXPECT_EQ(device_.recorded, 2);
  for (int i = 0; i < 20; ++i) {
    release_some();
    EXPECT_EQ(pass(static_cast<float>(i)), 2 * static_cast<float>(i) + 5);
  }
  EXPECT_LT(device_.recorded, 6);  // it does not pay
}

TEST_F(RecorderTest, GoesOnRecordingWhereItPays) {
  pass(0);
  for (int i = 0; i < 10; ++i) {
    for (int n = 0; n < 20; ++n) EXPECT_EQ(pass(static_cast<float>(n)), 2 * static_cast<float>(n) + 5);
    release_some();
  }
  EXPECT_EQ(device_.recorded, 10);
  EXPECT_EQ(device_.replayed, 200);
}

TEST_F(RecorderTest, TriesAgainLongAfterItDidNotPay) {
  for (int i = 0; i < 10; ++i) {
    pass(1);
    release_some();
  }
  const int recorded = device_.recorded;
  for (int i = 0; i < 300; ++i) EXPECT_EQ(pass(static_cast<float>(i)), 2 * static_cast<float>(i) + 5);
  EXPECT_EQ(device_.recorded, recorded + 1);
  // It pays now: the next one comes at once.
  release_some();
  pass(1);
  EXPECT_EQ(device_.recorded, recorded + 2);
}

TEST_F(RecorderTest, AnErrorInsideEndsTheRecording) {
  const auto fails = [&]() -> Tensor { throw std::runtime_error("no"); };
  for (int i = 0; i < 3; ++i) EXPECT_THROW(recorder_.run({7}, fails), std::runtime_error);
  EXPECT_EQ(pass(1), 7);
}

}  // namespace
}  // namespace qkv

// Passes are run, recorded and replayed; whatever happens in between, a result is that of running the pass.
#include "core/pass_recorder.h"

#include <gtest/gtest.h>

#include "core/engine.h"
#include "core/host_values.h"
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
  for (int i = 0; i < 6; ++i) EXPECT_EQ(pass(static_cast<float>(i), true), 2 * static_cast<float>(i) + 5);
  EXPECT_EQ(runs_, 6);
  EXPECT_EQ(device_.stopped, 1);  // not tried again
  EXPECT_EQ(device_.replayed, 0);
}

TEST_F(RecorderTest, RecordsAnewWhenMemoryWasReleased) {
  for (int i = 0; i < 4; ++i) pass(1);
  { const Storage gone(device_, DType::f32, 16); }
  EXPECT_EQ(pass(3), 11);
  EXPECT_EQ(device_.recorded, 2);
  for (int i = 0; i < 20; ++i) {
    { const Storage gone(device_, DType::f32, 16); }
    EXPECT_EQ(pass(static_cast<float>(i)), 2 * static_cast<float>(i) + 5);
  }
  EXPECT_LT(device_.recorded, 6);  // it does not pay
}

TEST_F(RecorderTest, AnErrorInsideEndsTheRecording) {
  const auto fails = [&]() -> Tensor { throw std::runtime_error("no"); };
  for (int i = 0; i < 3; ++i) EXPECT_THROW(recorder_.run({7}, fails), std::runtime_error);
  EXPECT_EQ(pass(1), 7);
}

}  // namespace
}  // namespace qkv

// A device in memory of the host that records its kernels, as GPUs do, and can replay them: passes that are recorded are
// tested without a GPU.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "base/turns.h"
#include "core/kernels.h"

namespace qkv::test {

class RecordingDevice final : public Device {
 public:
  const char* name() const override { return "recording"; }
  std::byte* allocate(int64_t bytes) override;
  void release(std::byte* data, int64_t bytes) noexcept override;
  void upload(std::byte* to, const void* from_host, int64_t bytes) override;
  void download(void* to_host, const std::byte* from, int64_t bytes) override;
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override { upload(to, from, bytes); }
  int64_t free_bytes() const override { return cpu_device().free_bytes(); }
  std::shared_ptr<void> turn() override { return take_turn(turns_); }

  bool can_record() const override { return true; }
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;

  using Step = std::function<void()>;
  void run(Step kernel);  // or keep it
  void stop();            // runs what was kept, and so the rest

  int recorded = 0, stopped = 0, replayed = 0;

 private:
  friend class Steps;
  Turns turns_;
  bool recording_ = false;
  int releases_ = 0;
  std::vector<Step> steps_;
};

// The kernels of the best table; those that give their results to the host spoil a recording.
const Kernels& recording_kernels();

}  // namespace qkv::test

// A second device for tests: its memory is protected from the host (any access is a SIGSEGV) except while a kernel or a
// copy runs. An op that assumes CPU memory crashes on it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "core/engine.h"
#include "kernels/tables.h"

namespace qkv::test {

class GuardedDevice final : public Device {
 public:
  GuardedDevice();
  ~GuardedDevice() override;
  GuardedDevice(const GuardedDevice&) = delete;
  GuardedDevice& operator=(const GuardedDevice&) = delete;
  const char* name() const override { return "guarded"; }
  std::byte* allocate(int64_t bytes) override;
  void release(std::byte* data, int64_t bytes) noexcept override;
  int64_t free_bytes() const override { return free; }
  void upload(std::byte* to, const void* from_host, int64_t bytes) override;
  void download(void* to_host, const std::byte* from, int64_t bytes) override;
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override;
  std::shared_ptr<void> turn() override;

  void begin_kernel() noexcept;
  void open() noexcept;  // counted
  void close() noexcept;

  int64_t taken = 0, most = 0;        // bytes allocated now, and most ever
  std::atomic<int> outside_pass = 0;  // kernels that began while no pass had a turn
  int64_t free = int64_t{1} << 40;    // what free_bytes() says
  int64_t lost_after = INT64_MAX;     // downloads; each later one throws, as from a GPU that fell off the bus

 private:
  void protect(int flags) noexcept;

  std::mutex mutex_;
  std::byte* room_ = nullptr;
  size_t used_ = 0;
  int opened_ = 0;
  std::atomic<int> turns_ = 0;
};

// The ref table, each kernel opening the device's memory for as long as it runs.
const Kernels& guarded_kernels();

// An engine on such a device. It computes the bits of the ref table on the host.
struct GuardedEngine {
  GuardedDevice device;
  Engine engine{guarded_kernels(), {.threads = 1, .device = &device}};
};

// What f(engine) gives on the guarded device and on the host. Every kernel runs within a pass, which has the device's turn.
template <class F>
auto on_both(const F& f) {
  const Engine host(kernels::ref::table(), {.threads = 1});
  GuardedEngine guarded;
  std::pair found{f(guarded.engine), f(host)};
  EXPECT_EQ(guarded.device.outside_pass, 0) << "kernels outside of any pass";
  return found;
}

}  // namespace qkv::test

// A second device for tests: its memory is protected from the host (any access is a SIGSEGV) except while a kernel or a
// copy runs. An op that assumes CPU memory crashes on it.
#pragma once

#include <map>
#include <mutex>

#include "core/kernels.h"

namespace qkv::test {

class GuardedDevice final : public Device {
 public:
  ~GuardedDevice() override;
  const char* name() const override { return "guarded"; }
  std::byte* allocate(int64_t bytes) override;
  void release(std::byte* data, int64_t bytes) noexcept override;
  void upload(std::byte* to, const void* from_host, int64_t bytes) override;
  void download(void* to_host, const std::byte* from, int64_t bytes) override;
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override;

  void open() noexcept;  // counted
  void close() noexcept;

 private:
  void protect(int flags) noexcept;

  std::mutex mutex_;
  std::map<std::byte*, size_t> allocations_;
  int opened_ = 0;
};

// The ref table, each kernel opening the device's memory for as long as it runs.
const Kernels& guarded_kernels();

}  // namespace qkv::test

// A second device for the tests: its memory is closed to the host (any touch is a SIGSEGV) and open only while a kernel
// runs or a copy is made. An op that assumes the CPU dies on it.
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

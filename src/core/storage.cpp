#include "core/storage.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/memory.h"

namespace qkv {
namespace {

class CpuDevice final : public Device {
 public:
  const char* name() const override { return "cpu"; }

  std::byte* allocate(int64_t bytes) override {
    constexpr auto kLine = static_cast<size_t>(kAlignment);
    const size_t padded = (static_cast<size_t>(bytes) + kLine - 1) / kLine * kLine;  // unsigned: cannot overflow
    void* data = std::aligned_alloc(kLine, padded);
    QKV_CHECK(data != nullptr, "out of memory: need ", bytes, " bytes but ", memory_text(), ", and the machine has ",
              physical_bytes(), " bytes in all", Hint(kMemoryHint));
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data, int64_t) noexcept override { std::free(data); }
  void upload(std::byte* to, const void* from_host, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from_host, static_cast<size_t>(bytes));
  }
  void download(void* to_host, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to_host, from, static_cast<size_t>(bytes));
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override { upload(to, from, bytes); }

 private:
  static int64_t physical_bytes() { return sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE); }
};

}  // namespace

Device& Device::host_memory() {
  return cpu_device();
}

int64_t Device::free_bytes() const {
  return available_memory();
}

Device& cpu_device() {
  static CpuDevice device;
  return device;
}

Storage::Storage(Device& device, Format format, const Shape& shape)
    : device_(&device), format_(format), bytes_(format.bytes_for(shape)) {
  data_ = device.allocate(bytes_ > 0 ? bytes_ : 1);
}

Storage::~Storage() {
  if (device_ != nullptr) device_->release(data_, bytes_ > 0 ? bytes_ : 1);
}

}  // namespace qkv

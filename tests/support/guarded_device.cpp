#include "support/guarded_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "kernels/tables.h"

namespace qkv::test {
namespace {

size_t whole_pages(int64_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (static_cast<size_t>(bytes) + page - 1) / page * page;
}

}  // namespace

GuardedDevice::~GuardedDevice() = default;

std::byte* GuardedDevice::allocate(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const size_t size = whole_pages(bytes);
  void* data =
      mmap(nullptr, size, opened_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  QKV_CHECK(data != MAP_FAILED, "guarded device: cannot map ", bytes, " bytes");
  allocations_[static_cast<std::byte*>(data)] = size;
  return static_cast<std::byte*>(data);
}

void GuardedDevice::release(std::byte* data, int64_t) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = allocations_.find(data);
  munmap(data, it->second);
  allocations_.erase(it);
}

void GuardedDevice::upload(std::byte* to, const void* from_host, int64_t bytes) {
  open();
  if (bytes > 0) std::memcpy(to, from_host, static_cast<size_t>(bytes));
  close();
}

void GuardedDevice::download(void* to_host, const std::byte* from, int64_t bytes) {
  open();
  if (bytes > 0) std::memcpy(to_host, from, static_cast<size_t>(bytes));
  close();
}

void GuardedDevice::copy(std::byte* to, const std::byte* from, int64_t bytes) {
  upload(to, from, bytes);
}

void GuardedDevice::open() noexcept {
  const std::lock_guard lock(mutex_);
  if (opened_++ == 0) protect(PROT_READ | PROT_WRITE);
}

void GuardedDevice::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (--opened_ == 0) protect(PROT_NONE);
}

void GuardedDevice::protect(int flags) noexcept {
  for (const auto& [data, size] : allocations_) mprotect(data, size, flags);
}

const Kernels& guarded_kernels() {
  static const Kernels table{.name = "guarded",
#define QKV_KERNEL(kernel, Args)                              \
  .kernel = [](const Exec& exec, const Args& args) noexcept { \
    auto& device = static_cast<GuardedDevice&>(*exec.device); \
    device.open();                                            \
    kernels::ref::table().kernel(exec, args);                 \
    device.close();                                           \
  },
                             QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
  };
  return table;
}

}  // namespace qkv::test

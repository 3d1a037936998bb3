#include "support/guarded_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/tables.h"

namespace qkv::test {
namespace {

constexpr size_t kRoom = size_t{1} << 38;  // of addresses, so that none is given twice

size_t whole_pages(int64_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (static_cast<size_t>(bytes) + page - 1) / page * page;
}

}  // namespace

GuardedDevice::GuardedDevice() {
  void* room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  QKV_CHECK(room != MAP_FAILED, "guarded device: cannot map ", kRoom, " bytes of addresses");
  room_ = static_cast<std::byte*>(room);
}

GuardedDevice::~GuardedDevice() {
  munmap(room_, kRoom);
}

std::byte* GuardedDevice::allocate(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const size_t size = whole_pages(bytes);
  QKV_CHECK(size <= kRoom - used_, "guarded device: ", bytes, " bytes more than ", used_, " do not fit into ", kRoom);
  std::byte* data = room_ + used_;
  used_ += size;
  taken += bytes;
  most = std::max(most, taken);
  if (opened_ > 0) protect(PROT_READ | PROT_WRITE);
  return data;
}

// What is released is never given out again: whoever still reads it reads zeros while a kernel runs, else dies.
void GuardedDevice::release(std::byte* data, int64_t bytes) noexcept {
  madvise(data, whole_pages(bytes), MADV_DONTNEED);
  const std::lock_guard lock(mutex_);
  taken -= bytes;
}

void GuardedDevice::upload(std::byte* to, const void* from_host, int64_t bytes) {
  open();
  if (bytes > 0) std::memcpy(to, from_host, static_cast<size_t>(bytes));
  close();
}

void GuardedDevice::download(void* to_host, const std::byte* from, int64_t bytes) {
  QKV_CHECK(lost_after > 0, "the guarded device is lost", Hint("this is a test"));
  --lost_after;
  open();
  if (bytes > 0) std::memcpy(to_host, from, static_cast<size_t>(bytes));
  close();
}

void GuardedDevice::copy(std::byte* to, const std::byte* from, int64_t bytes) {
  upload(to, from, bytes);
}

std::shared_ptr<void> GuardedDevice::turn() {
  ++turns_;
  return {this, [this](void*) { --turns_; }};
}

void GuardedDevice::begin_kernel() noexcept {
  if (turns_ == 0) ++outside_pass;
  open();
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
  if (used_ > 0) mprotect(room_, used_, flags);  // all of it is one stretch: a system call, however much is allocated
}

const Kernels& guarded_kernels() {
  static const Kernels table{.name = "guarded",
#define QKV_KERNEL(kernel, Args)                              \
  .kernel = [](const Exec& exec, const Args& args) noexcept { \
    auto& device = static_cast<GuardedDevice&>(*exec.device); \
    device.begin_kernel();                                    \
    kernels::ref::table().kernel(exec, args);                 \
    device.close();                                           \
  },
                             QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
  };
  return table;
}

}  // namespace qkv::test

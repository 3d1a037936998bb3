// A device that allocates and copies memory, and the owner of one allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/dtype.h"
#include "core/shape.h"

namespace qkv {

// Work of a device's kernels that can be done again, on what then lies at the same addresses.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual bool replay() = 0;  // false, with nothing done: the device released memory since it was made
};

// Memory of one kind. The host may touch it only through upload and download; kernels run where it lives.
class Device {
 public:
  static constexpr int64_t kAlignment = 64;

  virtual ~Device() = default;
  virtual const char* name() const = 0;
  virtual std::byte* allocate(
      int64_t bytes) = 0;  // aligned to kAlignment; the Error of a failure says how much was needed and free
  virtual void release(std::byte* data, int64_t bytes) noexcept = 0;
  virtual void upload(std::byte* to, const void* from_host, int64_t bytes) = 0;
  virtual void download(void* to_host, const std::byte* from, int64_t bytes) = 0;
  virtual void copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;  // within the device
  virtual void* stream() const { return nullptr; }                             // of devices that queue their work
  virtual int64_t scratch_bytes(int threads) const { return threads * (int64_t{4} << 20); }  // what its kernels need
  virtual bool keeps_logits() const { return false; }  // memory for them is cheaper than computing them twice
  virtual int64_t free_bytes() const;  // that can still be allocated; the host's, unless the device has its own
  virtual void finish() {}             // waits for queued work, and throws what went wrong in it
  virtual Device& host_memory();       // of the host, and fast to upload from and to download to
  // A device that queues its work has one queue for all threads: who holds the turn has it alone. A Context holds it, so
  // passes of several threads take turns; null where they need not.
  virtual std::shared_ptr<void> turn() { return nullptr; }

  // Devices that queue their work may record it: until end_recording, kernels are kept and not run. What cannot be done
  // again (an upload, a download, a copy, memory taken or released) ends the recording early: what was kept is run, and
  // so is the rest. Then end_recording gives null.
  virtual bool can_record() const { return false; }
  virtual void begin_recording() {}
  virtual std::unique_ptr<Recording> end_recording() { return nullptr; }
};

Device& cpu_device();

// Owns the bytes of one allocation on one device, laid out in one format.
class Storage {
 public:
  Storage() = default;
  Storage(Device& device, Format format, int64_t elements) : Storage(device, format, Shape{elements}) {}
  Storage(Device& device, Format format, const Shape& shape);
  Storage(Storage&& other) noexcept { swap(other); }
  Storage& operator=(Storage&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Storage();

  bool defined() const { return device_ != nullptr; }
  Device& device() const { return *device_; }
  Format format() const { return format_; }
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void swap(Storage& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(format_, other.format_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  Device* device_ = nullptr;
  Format format_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace qkv

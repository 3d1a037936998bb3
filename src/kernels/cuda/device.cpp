#include "kernels/cuda/device.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <string>
#include <tuple>

#include "base/error.h"
#include "kernels/tables.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int64_t kScratchBytes = int64_t{256} << 20;

std::atomic<int> first_error{cudaSuccess};

void note(cudaError_t code) noexcept {
  int none = cudaSuccess;
  if (code != cudaSuccess) first_error.compare_exchange_strong(none, code);
}

void check(cudaError_t code, const char* what) {
  note(code);
  const auto error = static_cast<cudaError_t>(first_error.load());
  QKV_CHECK(error == cudaSuccess, "the GPU failed, seen when ", what, ": ", cudaGetErrorString(error),
            Hint("the device is lost to this process; what was written before is intact: start again from the last "
                 "checkpoint, and look at nvidia-smi and the system log"));
}

std::string unusable() {
  int count = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess) return cudaGetErrorString(code);
  if (count == 0) return "no GPU is visible";
  cudaDeviceProp p{};
  if (const cudaError_t code = cudaGetDeviceProperties(&p, 0); code != cudaSuccess) return cudaGetErrorString(code);
  if (p.major != 9) {
    return std::string(p.name) + " has compute capability " + std::to_string(p.major) + "." + std::to_string(p.minor) +
           " but this build has kernels for 9.0";
  }
  return "";
}

class CudaDevice final : public Device {
 public:
  CudaDevice() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making its stream"); }
  const char* name() const override { return "cuda"; }
  void* stream() const override { return stream_; }
  int64_t scratch_bytes(int) const override { return kScratchBytes; }
  bool keeps_logits() const override { return true; }

  std::byte* allocate(int64_t bytes) override {
    void* data = nullptr;
    const cudaError_t code = cudaMalloc(&data, static_cast<size_t>(bytes));
    if (code == cudaErrorMemoryAllocation) {
      std::ignore = cudaGetLastError();
      size_t free = 0, all = 0;
      check(cudaMemGetInfo(&free, &all), "reading how much memory is free");
      QKV_FAIL("out of GPU memory: need ", bytes, " bytes but ", free, " of ", all, " are free",
               Hint("use a smaller batch, a shorter context or a smaller model, or --device cpu"));
    }
    check(code, "taking memory");
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data, int64_t) noexcept override {
    note(cudaStreamSynchronize(stream_));
    note(cudaFree(data));
  }
  // Memory of the host that is not pinned: the call returns when it may be used again.
  void upload(std::byte* to, const void* from_host, int64_t bytes) override {
    if (bytes > 0) move(to, from_host, bytes, cudaMemcpyHostToDevice);
  }
  void download(void* to_host, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) move(to_host, from, bytes, cudaMemcpyDeviceToHost);
    check(cudaStreamSynchronize(stream_), "reading from it");
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) move(to, from, bytes, cudaMemcpyDeviceToDevice);
  }

 private:
  void move(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream_), "copying");
  }

  cudaStream_t stream_ = nullptr;  // lives as long as the program
};

}  // namespace

bool available(const char** why) {
  static const std::string reason = unusable();
  if (why != nullptr) *why = reason.c_str();
  return reason.empty();
}

Device& device() {
  const char* why = nullptr;
  QKV_CHECK(available(&why), "there is no GPU to use: ", why, Hint("use --device cpu"));
  static CudaDevice gpu;
  return gpu;
}

int multiprocessors() {
  static const int count = [] {
    int value = 1;
    note(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    return value;
  }();
  return count;
}

void note_launch() noexcept {
  note(cudaGetLastError());
}

}  // namespace qkv::kernels::cuda

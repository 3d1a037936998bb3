// Memory for what scratch has no room for, so that which form a row takes never depends on how many rows there are. It goes
// back when the kernels that were launched meanwhile have ended.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {

class StreamMemory {
 public:
  explicit StreamMemory(const Exec& exec) : stream_(stream_of(exec)) {}
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  ~StreamMemory() {
    if (data_ == nullptr) return;
    cudaFreeAsync(data_, stream_);
    note_launch();
  }

  // Scratch, where it has so many bytes, or memory.
  std::byte* room(const Exec& exec, int64_t bytes) {
    return bytes <= exec.scratch.count() ? exec.scratch.data() : take(bytes);
  }
  // Once; null where there is none: then the next download throws.
  std::byte* take(int64_t bytes) {
    if (cudaMallocAsync(&data_, static_cast<size_t>(bytes), stream_) != cudaSuccess) data_ = nullptr;
    note_launch();
    return static_cast<std::byte*>(data_);
  }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
};

}  // namespace qkv::kernels::cuda

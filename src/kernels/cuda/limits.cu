#include "base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/limits.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/wgmma.h"
#include "kernels/cuda/wgmma_layout.h"
#include "kernels/tables.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kColumns = 256, kWarpgroups = 2, kTileBytes = 64 * 128;
constexpr int kOperandBytes = (kWarpgroups + kColumns / 64) * kTileBytes;  // 64 rows a warpgroup, 256 columns
constexpr int kProducts = 4096;                                            // of m64 n256 k64 per warpgroup
constexpr int kChains = 8, kSteps = 1 << 15;                               // of fused multiply-adds per thread

// Two warpgroups a multiprocessor multiply the same random tiles over and over.
__global__ void __launch_bounds__(128 * kWarpgroups, 1) products(float* sink) {
  uint8_t* const raw = dynamic_shared();
  const uint32_t base = (shared_address(raw) + 1023) & ~1023U;
  auto* words = reinterpret_cast<uint32_t*>(raw + (base - shared_address(raw)));
  for (uint32_t i = threadIdx.x; i < kOperandBytes / 4; i += blockDim.x) {
    const uint32_t bits = (i + 1) * 0x9E3779B9U;  // two bf16 near 1, of any sign
    words[i] = (bits & 0x807F807FU) | 0x3F803F80U;
  }
  fence_for_copies();
  __syncthreads();
  const uint64_t a = tile_descriptor(base + threadIdx.x / 128 * kTileBytes, 16, 1024);
  const uint64_t b = tile_descriptor(base + kWarpgroups * kTileBytes, 16, 1024);
  float sums[kColumns / 2];
#pragma unroll 1
  for (int i = 0; i < kProducts; ++i) {
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < 4; ++s) multiply_shared(sums, a + 2 * s, b + 2 * s, i > 0 || s > 0);
    wgmma_commit();
    wgmma_wait<0>();
  }
  if (sums[0] == 0.5F) *sink = sums[1];  // keeps the loop
}

__global__ void __launch_bounds__(kThreads) multiply_adds(float* sink, float by) {
  float x[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) x[c] = static_cast<float>(threadIdx.x + c);
#pragma unroll 1
  for (int i = 0; i < kSteps; ++i) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) x[c] = fmaf(x[c], by, 0.25F);
  }
  float total = 0;
  for (const float v : x) total += v;
  if (total == 0.5F) *sink = total;
}

// Seconds of f on the device's stream, after one call that is not counted.
template <class F>
double seconds_of(const F& f) {
  Device& gpu = table().device();
  auto* stream = static_cast<cudaStream_t>(gpu.stream());
  cudaEvent_t begin{}, end{};
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  f(stream);
  cudaEventRecord(begin, stream);
  f(stream);
  cudaEventRecord(end, stream);
  gpu.download(nullptr, nullptr, 0);  // waits, and throws what went wrong
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 1e-3 * static_cast<double>(milliseconds);
}

// Not taken from the device, which would let go of its recordings when this is released.
class OwnMemory {
 public:
  explicit OwnMemory(int64_t bytes) {
    const cudaError_t code = cudaMalloc(&data_, static_cast<size_t>(bytes));
    QKV_CHECK(code == cudaSuccess, "cannot take ", bytes, " bytes of GPU memory: ", cudaGetErrorString(code),
              Hint("see what else runs on the GPU"));
  }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  ~OwnMemory() { cudaFree(data_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace

double copy_bytes_per_second() {
  constexpr int64_t kBytes = int64_t{1} << 30;
  Device& gpu = table().device();
  const OwnMemory from(kBytes), to(kBytes);
  return 2 * static_cast<double>(kBytes) /
         seconds_of([&](cudaStream_t) { gpu.copy(to.as<std::byte>(), from.as<std::byte>(), kBytes); });
}

double bf16_operations_per_second() {
  QKV_CHECK(hopper(), "the peak of the tensor cores is read with Hopper's instructions, but this is a ", gpu_name(),
            Hint("benchmarks with --device cuda need a Hopper GPU"));
  constexpr int kShared = kOperandBytes + 1024;
  const OwnMemory sink(sizeof(float));
  const bool fits = cudaFuncSetAttribute(products, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared) == cudaSuccess;
  QKV_CHECK(fits, "the GPU refused ", kShared, " bytes of shared memory", Hint("this needs a Hopper GPU"));
  const double seconds = seconds_of([&](cudaStream_t stream) {
    launch_after(stream, products, static_cast<unsigned>(multiprocessors()), 128 * kWarpgroups, kShared,
                 sink.as<float>());
  });
  return 2.0 * 64 * kColumns * 64 * kProducts * kWarpgroups * multiprocessors() / seconds;
}

double f32_operations_per_second() {
  const OwnMemory sink(sizeof(float));
  const int blocks = 8 * multiprocessors();
  const double seconds = seconds_of([&](cudaStream_t stream) {
    launch_after(stream, multiply_adds, static_cast<unsigned>(blocks), kThreads, 0, sink.as<float>(), 0.5F);
  });
  return 2.0 * kChains * kSteps * kThreads * blocks / seconds;
}

}  // namespace qkv::kernels::cuda

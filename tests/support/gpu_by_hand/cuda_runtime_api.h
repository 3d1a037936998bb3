// What the kernels use of CUDA's runtime, in software (block.h). Launches run at once; a stream that is recorded keeps them.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "block.h"

// --- words of the language -------------------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __noinline__  // nothing: the standard library has it within attributes
#define __align__(n) __attribute__((aligned(n)))
#define __CUDA_ARCH__ 900

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline uint3 threadIdx, blockIdx;  // of the thread that runs
inline dim3 blockDim, gridDim;

#define QKV_VECTORS(type, name)                                           \
  struct alignas(sizeof(type) * 2) name##2 {                              \
    type x, y;                                                            \
  };                                                                      \
  struct alignas(sizeof(type) * 4 > 16 ? 16 : sizeof(type) * 4) name##4 { \
    type x, y, z, w;                                                      \
  };                                                                      \
  inline name##2 make_##name##2(type x, type y) {                         \
    return {x, y};                                                        \
  }                                                                       \
  inline name##4 make_##name##4(type x, type y, type z, type w) {         \
    return {x, y, z, w};                                                  \
  }
QKV_VECTORS(signed char, char)
QKV_VECTORS(float, float)
QKV_VECTORS(int, int)
QKV_VECTORS(unsigned, uint)
#undef QKV_VECTORS

// --- functions of device code ----------------------------------------------------------------------------------------

inline void __syncthreads() {
  gpu_by_hand::meet_threads(0, 0, false);
}
inline int __syncthreads_or(int p) {
  return gpu_by_hand::meet_threads(0, 0, p != 0) > 0 ? 1 : 0;
}
inline int __syncthreads_and(int p) {
  return gpu_by_hand::meet_threads(0, 0, p == 0) == 0 ? 1 : 0;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __syncwarp(unsigned mask = gpu_by_hand::kAllLanes) {
  gpu_by_hand::meet_lanes(mask, nullptr, [](void* const*, unsigned) {});
}
[[noreturn]] inline void __trap() {
  gpu_by_hand::fault("__trap");
}
// Offsets of addresses in shared memory; nobody asks this of other memory.
inline size_t __cvta_generic_to_shared(const void* p) {
  return gpu_by_hand::shared_address(p);
}

namespace gpu_by_hand {

template <class T>
struct Exchanged {
  T given, got;
  int from;  // a lane
};
template <class T>
T exchange(unsigned mask, T value, int from) {
  Exchanged<T> mine{value, value, from};
  meet_lanes(mask, &mine, [](void* const* all, unsigned lanes) {
    for (int i = 0; i < kWarpSize; ++i) {
      if ((lanes >> i & 1U) == 0) continue;
      auto& to = *static_cast<Exchanged<T>*>(all[i]);
      if (to.from < 0 || to.from >= kWarpSize) continue;  // it keeps its own
      if ((lanes >> to.from & 1U) == 0) fault("a lane reads from one that is not there");
      to.got = static_cast<const Exchanged<T>*>(all[to.from])->given;
    }
  });
  return mine.got;
}

struct Vote {
  uint64_t given;
  unsigned got;
};
template <class F>
unsigned vote(unsigned mask, uint64_t given, F) {  // F()(records, lanes, lane) -> what that lane gets
  Vote mine{given, 0};
  meet_lanes(mask, &mine, [](void* const* all, unsigned lanes) {
    for (int i = 0; i < kWarpSize; ++i) {
      if ((lanes >> i & 1U) != 0) static_cast<Vote*>(all[i])->got = F()(all, lanes, i);
    }
  });
  return mine.got;
}
inline unsigned equal_lanes(void* const* all, unsigned lanes, uint64_t value) {
  unsigned found = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    if ((lanes >> i & 1U) != 0 && static_cast<const Vote*>(all[i])->given == value) found |= 1U << i;
  }
  return found;
}

}  // namespace gpu_by_hand

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const int lane = gpu_by_hand::lane();
  return gpu_by_hand::exchange(mask, value, lane / width * width + from % width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  const int lane = gpu_by_hand::lane(), from = lane ^ with;
  return gpu_by_hand::exchange(mask, value, from / width == lane / width ? from : -1);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int lane = gpu_by_hand::lane(), from = lane - static_cast<int>(by);
  return gpu_by_hand::exchange(mask, value, from >= lane / width * width ? from : -1);
}
inline unsigned __ballot_sync(unsigned mask, int p) {
  return gpu_by_hand::vote(mask, p != 0 ? 1 : 0, [](void* const* all, unsigned lanes, int) {
    return gpu_by_hand::equal_lanes(all, lanes, 1);
  });
}
inline int __any_sync(unsigned mask, int p) {
  return __ballot_sync(mask, p) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int p) {
  return __ballot_sync(mask, p == 0 ? 1 : 0) == 0 ? 1 : 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return gpu_by_hand::vote(mask, bits, [](void* const* all, unsigned lanes, int i) {
    return gpu_by_hand::equal_lanes(all, lanes, static_cast<const gpu_by_hand::Vote*>(all[i])->given);
  });
}
// Threads change nowhere but where they meet, so these need nothing of the kind.
template <class T, class U>
T atomicAdd(T* at, U by) {
  const T before = *at;
  *at = static_cast<T>(before + static_cast<T>(by));
  return before;
}
template <class T, class U>
T atomicOr(T* at, U bits) {
  const T before = *at;
  *at = before | static_cast<T>(bits);
  return before;
}
template <class T, class U>
T atomicMin(T* at, U value) {
  const T before = *at;
  if (static_cast<T>(value) < before) *at = static_cast<T>(value);
  return before;
}
template <class T, class U>
T atomicExch(T* at, U value) {
  const T before = *at;
  *at = static_cast<T>(value);
  return before;
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcg(const T* at) {
  return *at;
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(uint64_t{a} * b >> 32);
}
inline float __uint_as_float(unsigned x) {
  float y = 0;
  std::memcpy(&y, &x, sizeof(y));
  return y;
}
inline unsigned __float_as_uint(float x) {
  unsigned y = 0;
  std::memcpy(&y, &x, sizeof(y));
  return y;
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline unsigned __vadd4(unsigned a, unsigned b) {
  return ((a & 0x7f7f7f7fU) + (b & 0x7f7f7f7fU)) ^ ((a ^ b) & 0x80808080U);
}
// Bytes of y:x by number; with bit 3 a byte's highest bit instead, eight times.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned select) {
  const uint64_t both = uint64_t{y} << 32 | x;
  unsigned found = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned which = select >> (4 * i) & 15U;
    auto byte = static_cast<unsigned>(both >> (8 * (which & 7U)) & 255U);
    if ((which & 8U) != 0) byte = (byte & 128U) != 0 ? 255 : 0;
    found |= byte << (8 * i);
  }
  return found;
}
inline float rsqrtf(float x) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
}
inline double rsqrt(double x) {
  return 1 / std::sqrt(x);
}
inline float rsqrt(float x) {
  return rsqrtf(x);
}
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using C = std::common_type_t<A, B>;
  return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a);
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using C = std::common_type_t<A, B>;
  return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a);
}
using std::abs, std::erf, std::exp, std::exp2, std::fma, std::log, std::sqrt, std::tanh, std::floor, std::pow, std::cos,
    std::sin, std::isfinite, std::isnan, std::isinf, std::fabs;

// --- the runtime -----------------------------------------------------------------------------------------------------

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrComputeCapabilityMajor
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaMemPoolAttr {
  cudaMemPoolAttrReleaseThreshold,
  cudaMemPoolAttrReservedMemCurrent,
  cudaMemPoolAttrUsedMemCurrent
};
enum { cudaStreamNonBlocking = 1, cudaHostAllocMapped = 2, cudaEnableDefault = 0 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };

struct cudaStreamOfHand;
struct cudaGraphOfHand;
struct cudaEventOfHand;
struct cudaPoolOfHand;
using cudaStream_t = cudaStreamOfHand*;
using cudaGraph_t = cudaGraphOfHand*;
using cudaGraphExec_t = cudaGraphOfHand*;
using cudaEvent_t = cudaEventOfHand*;
using cudaMemPool_t = cudaPoolOfHand*;

struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  int major, minor;
};

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemGetInfo(size_t* free, size_t* all);
cudaError_t cudaMalloc(void** data, size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream);
cudaError_t cudaMallocHost(void** data, size_t bytes);
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned version, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result);

template <class T>
cudaError_t cudaGetSymbolAddress(void** at, T& symbol) {
  *at = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}

enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

namespace gpu_by_hand {

cudaError_t allow_shared(const void* kernel, int bytes);
// Into the stream: run now, or kept.
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, const char* name, std::function<void()> body);

}  // namespace gpu_by_hand

template <class... Args>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Args...), cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return gpu_by_hand::allow_shared(reinterpret_cast<const void*>(kernel), value);
}
template <class... Taken, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Taken...), Given&&... given) {
  return gpu_by_hand::launch(
      *config, reinterpret_cast<const void*>(kernel), __PRETTY_FUNCTION__,
      [kernel, all = std::tuple<std::remove_cvref_t<Taken>...>(given...)] { std::apply(kernel, all); });
}

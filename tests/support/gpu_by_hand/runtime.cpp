// CUDA's runtime and driver, as far as the kernels use them, on memory of the host.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

using gpu_by_hand::kMostShared;
using gpu_by_hand::kProcessors;

// What a stream has to do: a kernel, or something else.
struct Task {
  gpu_by_hand::Kernel kernel;
  std::function<void()> other;
};
struct cudaGraphOfHand {
  std::vector<Task> tasks;
};
struct cudaStreamOfHand {
  std::deque<Task> tasks;
  std::unique_ptr<cudaGraphOfHand> recorded;
};
struct cudaEventOfHand {
  std::chrono::steady_clock::time_point at;
};

namespace {

constexpr size_t kMemory = size_t{6} << 30, kPoisoned = 1 << 20;
constexpr unsigned kMostBlocksAcross = 65535;

thread_local cudaError_t last_error = cudaSuccess;
std::mutex memory_mutex;
std::map<void*, size_t> memory, pinned;
size_t used = 0;
std::mutex kernels_mutex;
std::map<const void*, uint32_t> allowed;  // bytes of shared memory, where a kernel asked for more than any may have

cudaError_t keep(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t take(void** data, size_t bytes) {
  const std::lock_guard held(memory_mutex);
  if (bytes > kMemory - used) return keep(cudaErrorMemoryAllocation);
  void* const made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (made == nullptr) return keep(cudaErrorMemoryAllocation);
  std::memset(made, 0xff, std::min(bytes, kPoisoned));  // NaN, and numbers that are out of every range
  memory[made] = bytes;
  used += bytes;
  *data = made;
  return cudaSuccess;
}

// Memory of the device that is no longer counted; whoever still reads it finds no number.
std::function<void()> drop(void* data) {
  const std::lock_guard held(memory_mutex);
  const auto found = memory.find(data);
  if (found == memory.end()) return nullptr;
  const size_t bytes = found->second;
  used -= bytes;
  memory.erase(found);
  return [=] {
    std::memset(data, 0xff, std::min(bytes, kPoisoned));
    std::free(data);
  };
}

bool is_pinned(const void* at) {
  const std::lock_guard held(memory_mutex);
  auto after = pinned.upper_bound(const_cast<void*>(at));
  if (after == pinned.begin()) return false;
  --after;
  return static_cast<const char*>(at) < static_cast<const char*>(after->first) + after->second;
}

void add(cudaStream_t stream, Task task) {
  if (stream->recorded != nullptr) {
    stream->recorded->tasks.push_back(std::move(task));
  } else {
    stream->tasks.push_back(std::move(task));
  }
}
void add(cudaStream_t stream, std::function<void()> other) {
  add(stream, Task{{}, std::move(other)});
}

// Kernels that may start while the one before still works start as early as they ever may.
void begin_after(std::deque<Task>& tasks, size_t i) {
  for (bool next_may = true; next_may && i + 1 < tasks.size() && !tasks[i].other; ++i) {
    Task& next = tasks[i + 1];
    if (next.other || !next.kernel.early || !next.kernel.begun.empty()) return;
    next_may = begin(next.kernel);
  }
}

// A GPU is ahead of nobody: what a stream has to do is done when the host waits for it.
void do_all(cudaStream_t stream) {
  while (!stream->tasks.empty()) {
    begin_after(stream->tasks, 0);
    Task& task = stream->tasks.front();
    task.other ? task.other() : finish(task.kernel);
    stream->tasks.pop_front();
  }
}

CUresult encode(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* data, const cuuint64_t* dims,
                const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave,
                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  if (rank != 3 || reinterpret_cast<uintptr_t>(data) % 16 != 0 || box[0] != 64) return CUDA_ERROR_INVALID_VALUE;
  *map = {};
  map->data = static_cast<const unsigned char*>(data);
  for (int i = 0; i < 3; ++i) {
    if (dims[i] == 0 || dims[i] > uint64_t{1} << 32 || box[i] == 0 || box[i] > 256 || steps[i] != 1) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    map->dims[i] = static_cast<int64_t>(dims[i]);
    map->box[i] = static_cast<int>(box[i]);
  }
  for (int i = 0; i < 2; ++i) {
    if (strides[i] % 16 != 0 || strides[i] >= uint64_t{1} << 40) return CUDA_ERROR_INVALID_VALUE;
    map->strides[i] = static_cast<int64_t>(strides[i]);
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace gpu_by_hand {

cudaError_t allow_shared(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<uint32_t>(bytes) > kMostShared) return keep(cudaErrorInvalidValue);
  const std::lock_guard held(kernels_mutex);
  allowed[kernel] = static_cast<uint32_t>(bytes);
  return cudaSuccess;
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, const char* name, std::function<void()> body) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  uint32_t most = kSharedWithoutAsking;
  {
    const std::lock_guard held(kernels_mutex);
    const auto found = allowed.find(kernel);
    if (found != allowed.end()) most = std::max(most, found->second);
  }
  const bool fits = grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= INT32_MAX && grid.y <= kMostBlocksAcross &&
                    grid.z <= kMostBlocksAcross && block.x > 0 && block.x <= kMostThreads && block.y == 1 &&
                    block.z == 1 && config.dynamicSmemBytes <= most;
  if (!fits) return keep(cudaErrorInvalidValue);
  const Grid wanted{{grid.x, grid.y, grid.z}, block.x, static_cast<uint32_t>(config.dynamicSmemBytes), name};
  const bool early = config.numAttrs == 1 && config.attrs->val.programmaticStreamSerializationAllowed != 0;
  add(config.stream, Task{{wanted, std::move(body), early, {}}, nullptr});
  return cudaSuccess;
}

}  // namespace gpu_by_hand

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    default:
      return "an error of the GPU by hand";
  }
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : keep(cudaErrorInvalidValue);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {.name = "a GPU by hand", .uuid = {"by hand"}, .major = 9, .minor = 0};
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = kProcessors;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = kMostShared;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  const std::lock_guard held(memory_mutex);
  *static_cast<uint64_t*>(value) = used;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* all) {
  const std::lock_guard held(memory_mutex);
  *free = kMemory - used;
  *all = kMemory;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  return take(data, bytes);
}

cudaError_t cudaFree(void* data) {
  const std::function<void()> dropped = drop(data);
  if (!dropped) return keep(cudaErrorInvalidValue);
  dropped();
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t) {
  return take(data, bytes);
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  std::function<void()> dropped = drop(data);
  if (!dropped) return keep(cudaErrorInvalidValue);
  add(stream, std::move(dropped));
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** data, size_t bytes) {
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*data == nullptr) return keep(cudaErrorMemoryAllocation);
  const std::lock_guard held(memory_mutex);
  pinned[*data] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  return cudaMallocHost(data, bytes);
}

cudaError_t cudaFreeHost(void* data) {
  const std::lock_guard held(memory_mutex);
  if (pinned.erase(data) == 0) return keep(cudaErrorInvalidValue);
  std::free(data);
  return cudaSuccess;
}

// Of the host's memory only what is pinned is read and written later.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind == cudaMemcpyHostToDevice && !is_pinned(from)) {
    const auto* const first = static_cast<const unsigned char*>(from);
    add(stream, [to, copied = std::vector<unsigned char>(first, first + bytes)] {
      std::memcpy(to, copied.data(), copied.size());
    });
  } else {
    add(stream, [=] { std::memmove(to, from, bytes); });
    if (kind == cudaMemcpyDeviceToHost && !is_pinned(to)) do_all(stream);
  }
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  add(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new cudaStreamOfHand;  // lives as long as the program
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->recorded != nullptr) return keep(cudaErrorInvalidValue);
  do_all(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->recorded != nullptr) return keep(cudaErrorInvalidValue);
  stream->recorded = std::make_unique<cudaGraphOfHand>();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->recorded.release();
  return *graph != nullptr ? cudaSuccess : keep(cudaErrorInvalidValue);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = new cudaGraphOfHand(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  add(stream, [] {});  // a graph begins when all before it has ended
  for (const Task& task : graph->tasks) add(stream, task);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new cudaEventOfHand;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  add(stream, [event] { event->at = std::chrono::steady_clock::now(); });
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** found, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *found = reinterpret_cast<void*>(&encode);
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

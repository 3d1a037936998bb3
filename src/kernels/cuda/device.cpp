#include "kernels/cuda/device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/turns.h"
#include "kernels/tables.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int64_t kScratchBytes = int64_t{256} << 20;

std::atomic<int> first_error{cudaSuccess};
std::atomic<bool> is_recording{false};
std::atomic<uint64_t> releases{0};  // of memory, ever

void note(cudaError_t code) noexcept {
  int none = cudaSuccess;
  if (code != cudaSuccess) first_error.compare_exchange_strong(none, code);
}

void check(cudaError_t code, const char* what) {
  note(code);
  const auto error = static_cast<cudaError_t>(first_error.load());
  // By a kernel that needed more than scratch has: it was not run, and nothing else is wrong.
  if (error == cudaErrorMemoryAllocation) {
    first_error = cudaSuccess;
    QKV_FAIL("out of GPU memory, seen when ", what,
             Hint("use smaller batches, a shorter context or a smaller model, or --device cpu"));
  }
  QKV_CHECK(error == cudaSuccess, "the GPU failed, seen when ", what, ": ", cudaGetErrorString(error),
            Hint("the device is lost to this process; what was written before is intact: start again from the last "
                 "checkpoint, and look at nvidia-smi and the system log"));
}

// What the runtime remembers of a call that may fail would be taken for the next kernel's.
void forget_last_error() noexcept {
  std::ignore = cudaGetLastError();
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Ranks of one machine take its GPUs in turn; a program alone takes the first.
int gpu_number() {
  static const int chosen = [] {
    int count = 0;
    note(cudaGetDeviceCount(&count));
    for (const char* rank : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
      if (const char* text = std::getenv(rank); text != nullptr && count > 0) return std::abs(std::atoi(text)) % count;
    }
    return 0;
  }();
  return chosen;
}

// Each thread has to say once which GPU its calls mean.
void choose_gpu() {
  static thread_local const cudaError_t chosen = cudaSetDevice(gpu_number());
  note(chosen);
}

std::string unusable() {
  int count = 0, driver = 0, needed = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver) {
    note(cudaDriverGetVersion(&driver));
    note(cudaRuntimeGetVersion(&needed));
    if (driver == 0) return "no driver for NVIDIA GPUs is installed (libcuda.so.1 is missing)";
    return "the driver is made for CUDA " + version_text(driver) + " but this program needs one for " +
           version_text(needed) + " or later";
  }
  if (counted != cudaSuccess && counted != cudaErrorNoDevice) return cudaGetErrorString(counted);
  if (count == 0) return "the driver sees no GPU (CUDA_VISIBLE_DEVICES, nvidia-smi)";
  cudaDeviceProp p{};
  if (const cudaError_t code = cudaGetDeviceProperties(&p, gpu_number()); code != cudaSuccess)
    return cudaGetErrorString(code);
  if (p.major < 8) {
    return std::string(p.name) + " has compute capability " + std::to_string(p.major) + "." + std::to_string(p.minor) +
           " but this build has kernels for 8.0 and later";
  }
  return "";
}

cudaDeviceProp properties() {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, gpu_number()), "reading what it is");
  return p;
}

int attribute(cudaDeviceAttr of) {
  int value = 0;
  note(cudaDeviceGetAttribute(&value, of, gpu_number()));
  return value;
}

// Memory of the host that the GPU reads and writes at full speed.
class PinnedMemory final : public Device {
 public:
  const char* name() const override { return "pinned"; }
  std::byte* allocate(int64_t bytes) override {
    void* data = nullptr;
    const cudaError_t code = cudaMallocHost(&data, static_cast<size_t>(bytes));
    if (code != cudaSuccess) forget_last_error();
    QKV_CHECK(code == cudaSuccess, "cannot pin ", bytes, " bytes of memory: ", cudaGetErrorString(code),
              Hint("see what ulimit -l allows"));
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data, int64_t) noexcept override { note(cudaFreeHost(data)); }
  void upload(std::byte* to, const void* from_host, int64_t bytes) override {
    std::memcpy(to, from_host, static_cast<size_t>(bytes));
  }
  void download(void* to_host, const std::byte* from, int64_t bytes) override {
    std::memcpy(to_host, from, static_cast<size_t>(bytes));
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override { upload(to, from, bytes); }
  int64_t free_bytes() const override { return cpu_device().free_bytes(); }
};

Device& pinned_memory() {
  static PinnedMemory memory;
  return memory;
}

// What is uploaded waits here for the copy engine, so that the caller's memory is free at once.
class UploadRing {
 public:
  static constexpr int64_t kBytes = 1 << 20;

  // The bytes, where they stay until the stream has copied them. Null if there are too many.
  const std::byte* keep(const void* from, int64_t bytes, cudaStream_t stream) {
    if (bytes > kBytes / 4) return nullptr;
    if (ring_ == nullptr) ring_ = pinned_memory().allocate(kBytes);
    if (used_ + bytes > kBytes) {
      check(cudaStreamSynchronize(stream), "uploading");
      used_ = 0;
    }
    std::byte* at = ring_ + used_;
    std::memcpy(at, from, static_cast<size_t>(bytes));
    used_ += (bytes + 63) / 64 * 64;
    return at;
  }
  void all_copied() { used_ = 0; }

 private:
  std::byte* ring_ = nullptr;  // lives as long as the program
  int64_t used_ = 0;
};

// What threads drop while another one has the turn: they do not wait, for they may hold what that one waits for (Python's
// lock, while it drops a model). It is freed by the next pass.
class Dropped {
 public:
  void add(std::byte* memory) {
    const std::lock_guard held(mutex_);
    memory_.push_back(memory);
  }
  void add(cudaGraphExec_t graph) {
    const std::lock_guard held(mutex_);
    graphs_.push_back(graph);
  }
  // By who has the turn.
  void free(cudaStream_t stream) noexcept {
    const std::lock_guard held(mutex_);
    releases += memory_.size();
    for (std::byte* memory : memory_) note(cudaFreeAsync(memory, stream));
    if (!graphs_.empty()) note(cudaStreamSynchronize(stream));
    for (cudaGraphExec_t graph : graphs_) note(cudaGraphExecDestroy(graph));
    memory_.clear();
    graphs_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::byte*> memory_;
  std::vector<cudaGraphExec_t> graphs_;
};

// What the threads of a device share.
struct Queue {
  Turns turns;
  Dropped dropped;
  cudaStream_t stream = nullptr;  // lives as long as the program
};

// A graph of kernels.
class CudaRecording final : public Recording {
 public:
  CudaRecording(cudaGraphExec_t graph, Queue& queue) : graph_(graph), queue_(queue), made_(releases) {}
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() override {
    queue_.dropped.add(graph_);
    if (!queue_.turns.try_lock()) return;
    queue_.dropped.free(queue_.stream);
    queue_.turns.unlock();
  }
  bool replay() override {
    if (made_ != releases) return false;
    note(cudaGraphLaunch(graph_, queue_.stream));
    return true;
  }

 private:
  cudaGraphExec_t graph_;
  Queue& queue_;
  uint64_t made_;
};

// All threads share the stream, what is recorded of it and the ring: every call holds the turn, and a pass holds it from its
// first kernel to its last number.
class CudaDevice final : public Device {
 public:
  CudaDevice() {
    const auto opened = [](cudaError_t code, const char* what) {
      if (code == cudaSuccess) return;
      forget_last_error();
      QKV_FAIL("the GPU cannot be used, seen when ", what, ": ", cudaGetErrorString(code),
               Hint("another process may have filled it or hold it alone, nvidia-smi shows them; or use --device cpu"));
    };
    opened(cudaSetDevice(gpu_number()), "choosing it");
    opened(cudaStreamCreateWithFlags(&queue_.stream, cudaStreamNonBlocking), "making its stream");
    opened(cudaDeviceGetDefaultMemPool(&pool_, gpu_number()), "making its memory pool");
    uint64_t all = UINT64_MAX;  // what is freed stays ours: giving it back to the system waits for the whole device
    opened(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &all), "making its memory pool");
  }
  const char* name() const override { return "cuda"; }
  void* stream() const override { return queue_.stream; }
  int64_t scratch_bytes(int) const override { return kScratchBytes; }
  bool keeps_logits() const override { return true; }
  Device& host_memory() override { return pinned_memory(); }
  std::shared_ptr<void> turn() override {
    std::shared_ptr<void> turn = take_turn(queue_.turns);
    choose_gpu();
    free_dropped();
    return turn;
  }

  std::byte* allocate(int64_t bytes) override {
    const Turn turn(*this);
    free_dropped();
    void* data = nullptr;
    const cudaError_t code = cudaMallocAsync(&data, static_cast<size_t>(bytes), queue_.stream);
    if (code == cudaErrorMemoryAllocation) {
      forget_last_error();
      QKV_FAIL("out of GPU memory: need ", bytes, " bytes but ", free_bytes(), " of ", memory().all, " are free",
               Hint("use a smaller batch, a shorter context or a smaller model, or --device cpu"));
    }
    check(code, "taking memory");
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data, int64_t) noexcept override {
    queue_.dropped.add(data);
    if (!queue_.turns.try_lock()) return;
    const std::lock_guard turn(queue_.turns, std::adopt_lock);
    choose_gpu();
    free_dropped();
  }
  // What the system has, and what the pool keeps for the next allocation.
  int64_t free_bytes() const override {
    choose_gpu();
    uint64_t reserved = 0, used = 0;
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved), "reading how much it holds");
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), "reading how much it holds");
    return static_cast<int64_t>(memory().free + reserved - used);
  }
  // Much at once is copied from the caller's memory: the call returns when that may be used again.
  void upload(std::byte* to, const void* from_host, int64_t bytes) override {
    const Turn turn(*this);
    stop_recording();
    if (bytes <= 0) return;
    const std::byte* kept = ring_.keep(from_host, bytes, queue_.stream);
    move(to, kept != nullptr ? kept : from_host, bytes, cudaMemcpyHostToDevice);
    if (kept == nullptr) finish();
  }
  void download(void* to_host, const std::byte* from, int64_t bytes) override {
    const Turn turn(*this);
    stop_recording();
    if (bytes > 0) move(to_host, from, bytes, cudaMemcpyDeviceToHost);
    finish();
  }
  void finish() override {
    const Turn turn(*this);
    stop_recording();
    check(cudaStreamSynchronize(queue_.stream), "waiting for it");
    ring_.all_copied();
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    const Turn turn(*this);
    stop_recording();
    if (bytes > 0) move(to, from, bytes, cudaMemcpyDeviceToDevice);
  }

  bool can_record() const override { return true; }
  // Within a pass: its thread has the turn.
  void begin_recording() override {
    is_recording = cudaStreamBeginCapture(queue_.stream, cudaStreamCaptureModeRelaxed) == cudaSuccess;
    if (!is_recording) forget_last_error();
  }
  std::unique_ptr<Recording> end_recording() override {
    if (!is_recording) return nullptr;
    cudaGraphExec_t graph = recorded();
    return graph != nullptr ? std::make_unique<CudaRecording>(graph, queue_) : nullptr;
  }
  void stop_recording() noexcept {
    const Turn turn(*this);
    if (!is_recording) return;
    cudaGraphExec_t graph = recorded();
    if (graph != nullptr) CudaRecording(graph, queue_).replay();
  }

 private:
  class Turn {
   public:
    explicit Turn(CudaDevice& of) : held_(of.queue_.turns) { choose_gpu(); }

   private:
    std::lock_guard<Turns> held_;
  };

  void free_dropped() noexcept {
    stop_recording();
    queue_.dropped.free(queue_.stream);
  }

  struct Memory {
    size_t free = 0, all = 0;
  };
  static Memory memory() {
    Memory now;
    check(cudaMemGetInfo(&now.free, &now.all), "reading how much memory is free");
    return now;
  }
  void move(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, queue_.stream), "copying");
  }

  // Ends the recording.
  cudaGraphExec_t recorded() noexcept {
    is_recording = false;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    note(cudaStreamEndCapture(queue_.stream, &graph));
    if (graph == nullptr) return nullptr;
    note(cudaGraphInstantiate(&made, graph, 0));
    note(cudaGraphDestroy(graph));
    return made;
  }

  Queue queue_;
  cudaMemPool_t pool_ = nullptr;
  UploadRing ring_;
};

CudaDevice& the_device() {
  static auto* const device = new CudaDevice;  // for what is released when the program ends
  return *device;
}

}  // namespace

bool available(const char** why) {
  static const std::string reason = unusable();
  if (why != nullptr) *why = reason.c_str();
  return reason.empty();
}

Device& device() {
  const char* why = nullptr;
  QKV_CHECK(available(&why), "there is no GPU to use: ", why, Hint("use --device cpu"));
  return the_device();
}

std::string gpu_name() {
  return hopper() ? properties().name : std::string(properties().name) + ", with kernels that were never tested on it";
}

std::string gpu_id() {
  const cudaUUID_t id = properties().uuid;
  return {id.bytes, sizeof(id.bytes)};
}

int multiprocessors() {
  static const int count = std::max(attribute(cudaDevAttrMultiProcessorCount), 1);
  return count;
}

int64_t most_shared_bytes() {
  static const int bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return bytes;
}

bool hopper() {
  static const bool is = attribute(cudaDevAttrComputeCapabilityMajor) == 9;
  return is;
}

bool goes_back(bool may) noexcept {
  static std::atomic<bool> last = false;
  return last = may && !last;
}

bool recording() noexcept {
  return is_recording;
}

void stop_recording() noexcept {
  if (is_recording) the_device().stop_recording();
}

void note_launch() noexcept {
  note(cudaGetLastError());
}

}  // namespace qkv::kernels::cuda

// Launching: one thread or one block per index, sums inside a block in a fixed order, and errors kept for the next
// download. Grids never change a result: an index is computed alone.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/access.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/ptx.h"

namespace qkv::kernels::cuda {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline constexpr int64_t kMostBlocks = 1 << 16;  // then a block takes several indices
inline constexpr int kMostAcross = 65535;        // blocks of a grid in y and z

inline cudaStream_t stream_of(const Exec& exec) {
  return static_cast<cudaStream_t>(exec.stream);
}

// Programmatic dependent launch, on Hopper: a kernel is made ready while the one before it ends, and waits before it reads or writes
// what others write. In recorded passes a kernel may also let the next one start while it still works itself; elsewhere that is
// slower (docs/cuda.md), so kernels that run in both are told where they are: as their first parameter, from launch().
struct Recorded {
  bool value;
};
__device__ inline void let_next_start(Recorded recorded) {
  if (recorded.value) let_next_start();
}

inline cudaLaunchConfig_t launch_config(cudaStream_t stream, dim3 grid, int threads, size_t shared_bytes) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return config;
}

// Launches a kernel that begins when the one before it has ended.
template <class Kernel, class... Args>
void launch_after(cudaStream_t stream, Kernel* kernel, dim3 grid, int threads, size_t shared_bytes,
                  const Args&... args) {
  const cudaLaunchConfig_t config = launch_config(stream, grid, threads, shared_bytes);
  cudaLaunchKernelEx(&config, kernel, args...);
  note_launch();
}

template <class Kernel>
inline constexpr bool kAsksIfRecorded = false;
template <class... Args>
inline constexpr bool kAsksIfRecorded<void(Recorded, Args...)> = true;

// Launches a kernel that calls wait_for_last in every block; `recorded` where it reads before that what does not change within a
// recording, as weights and earlier keys.
enum class Early { always, recorded };
template <Early kEarly = Early::always, class Kernel, class... Args>
void launch(const Exec& exec, Kernel* kernel, dim3 grid, int threads, size_t shared_bytes, const Args&... args) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = launch_config(stream_of(exec), grid, threads, shared_bytes);
  config.attrs = &early;
  config.numAttrs = hopper() && (kEarly == Early::always || recording()) ? 1 : 0;
  if constexpr (kAsksIfRecorded<Kernel>) {
    cudaLaunchKernelEx(&config, kernel, Recorded{recording()}, args...);
  } else {
    cudaLaunchKernelEx(&config, kernel, args...);
  }
  note_launch();
}

template <class F>
__global__ void __launch_bounds__(kThreads) run_threads(Recorded recorded, int64_t count, const __grid_constant__ F f) {
  let_next_start(recorded);
  wait_for_last();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) f(i);
}

template <int kThreadsOfBlock, class F>
__global__ void __launch_bounds__(kThreadsOfBlock)
    run_blocks(Recorded recorded, int64_t count, const __grid_constant__ F f) {
  let_next_start(recorded);
  wait_for_last();
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) f(i);
}

// f(i) for every i below count, each in one thread.
template <class F>
void each_thread(const Exec& exec, int64_t count, const F& f) {
  if (count <= 0) return;
  const auto grid = static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks));
  launch(exec, run_threads<F>, grid, kThreads, 0, count, f);
}

// f(i) for every i below count, each by all threads of a block; shared bytes are f's.
template <int kThreadsOfBlock = kThreads, class F>
void each_block(const Exec& exec, int64_t count, const F& f, size_t shared_bytes = 0) {
  if (count <= 0) return;
  const auto grid = static_cast<unsigned>(std::min(count, kMostBlocks));
  launch(exec, run_blocks<kThreadsOfBlock, F>, grid, kThreadsOfBlock, shared_bytes, count, f);
}

// The sum of x over the threads of a warp: a tree, the same in every lane.
template <class R>
__device__ R warp_sum(R x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffU, x, lanes);
  return x;
}
template <class R>
__device__ R warp_max(R x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const R other = __shfl_xor_sync(0xffffffffU, x, lanes);
    x = other > x ? other : x;
  }
  return x;
}

// Over the threads of a block: each warp's tree, then the warps in order. Every thread gets the result.
template <int kWarpsOfBlock, class R, class Combine>
__device__ R block_combine(R of_warp, Combine combine) {
  __shared__ R parts[kWarpsOfBlock];
  __syncthreads();  // the last one's readers are done
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = of_warp;
  __syncthreads();
  R all = parts[0];
#pragma unroll
  for (int w = 1; w < kWarpsOfBlock; ++w) all = combine(all, parts[w]);
  return all;
}
template <int kWarpsOfBlock = kWarps, class R>
__device__ R block_sum(R x) {
  return block_combine<kWarpsOfBlock>(warp_sum(x), [](R a, R b) { return a + b; });
}
template <int kWarpsOfBlock = kWarps, class R>
__device__ R block_max(R x) {
  return block_combine<kWarpsOfBlock>(warp_max(x), [](R a, R b) { return b > a ? b : a; });
}

// Sums over rows: pieces of kRowsEach rows, each in order by one thread per column; then the pieces, in kRuns runs of
// neighbours, each in order; then the runs in order. The partial sums lie in scratch.
inline constexpr int64_t kRowsEach = 64;
inline constexpr int kRuns = 32;  // a warp each: pieces are hundreds, and each has to be waited for

// finish(column, sum of partial[piece * stride + column] over the pieces).
template <class R, class G>
void add_pieces(const Exec& exec, const R* partial, int64_t pieces, int64_t stride, int64_t columns, const G& finish) {
  each_block<32 * kRuns>(exec, (columns + 31) / 32, [=] __device__(int64_t block) {
    __shared__ R runs[kRuns][32];
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t c = 32 * block + lane, run = (pieces + kRuns - 1) / kRuns;
    const int64_t end = (warp + 1) * run < pieces ? (warp + 1) * run : pieces;
    R total = 0;
    if (c < columns) {
#pragma unroll 8
      for (int64_t piece = warp * run; piece < end; ++piece) total += partial[piece * stride + c];
    }
    runs[warp][lane] = total;
    __syncthreads();
    if (warp == 0 && c < columns) {
#pragma unroll 8
      for (int w = 1; w < kRuns; ++w) total += runs[w][lane];
      finish(c, total);
    }
    __syncthreads();
  });
}

// f(row, column) -> R;  finish(column, sum).
template <class R, class F, class G>
void sum_rows(const Exec& exec, int64_t rows, int64_t columns, const F& f, const G& finish) {
  const int64_t pieces = (rows + kRowsEach - 1) / kRowsEach;
  const int64_t room = exec.scratch.count() / static_cast<int64_t>(sizeof(R));
  const int64_t at_once = std::min(columns, std::max<int64_t>(room / std::max<int64_t>(pieces, 1), 1));
  auto* partial = reinterpret_cast<R*>(exec.scratch.data());
  for (int64_t first = 0; first < columns; first += at_once) {
    const int64_t some = std::min(at_once, columns - first);
    each_thread(exec, pieces * some, [=] __device__(int64_t i) {
      const int64_t piece = i / some, c = first + i % some;
      const int64_t end = (piece + 1) * kRowsEach < rows ? (piece + 1) * kRowsEach : rows;
      R total = 0;
      for (int64_t r = piece * kRowsEach; r < end; ++r) total += f(r, c);
      partial[i] = total;
    });
    add_pieces(exec, partial, pieces, some, some, [=] __device__(int64_t c, R sum) { finish(first + c, sum); });
  }
}

}  // namespace qkv::kernels::cuda

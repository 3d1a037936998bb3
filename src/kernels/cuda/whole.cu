// fill, copy, add, sums and checks over whole tensors.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/total.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
void fill_as(const Exec& exec, const FillArgs& a) {
  const R value = static_cast<R>(a.value);
  map<R, 1, 0>(exec, {Grad{a.y}}, {},
               [=] __device__(const auto&, auto& y) { each_of(y, [&](int i) { y[0][i] = value; }); });
}

template <class R>
void copy_as(const Exec& exec, const CopyArgs& a) {
  const R factor = static_cast<R>(a.factor);
  map<R, 1, 1>(exec, {Grad{a.y, a.add}}, {a.x},
               [=] __device__(const auto& x, auto& y) { each_of(y, [&](int i) { y[0][i] = factor * x[0][i]; }); });
}

template <class R>
void add_as(const Exec& exec, const AddArgs& a) {
  map<R, 1, 2>(exec, {Grad{a.y}}, {a.a, a.b},
               [] __device__(const auto& x, auto& y) { each_of(y, [&](int i) { y[0][i] = x[0][i] + x[1][i]; }); });
}

// Kernels here end in their last block. They follow each other on one stream, so one counter is enough.
__device__ unsigned blocks_finished = 0;

// Whether this is the last block of its grid; it sees what all others wrote.
__device__ bool last_block() {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&blocks_finished, 1) == gridDim.x - 1;
    if (last) blocks_finished = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

template <class A, class Term, class Finish>
__global__ void __launch_bounds__(kThreads)
    total_kernel(Recorded recorded, const __grid_constant__ A x, int64_t count, int64_t each, double* partial,
                 Term term, const __grid_constant__ Finish finish) {
  let_next_start(recorded);
  wait_for_last();
  const int64_t begin = blockIdx.x * each;
  double sum = block_total(x, begin, min(begin + each, count), term);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
  if (!last_block()) return;
  sum = total_of_blocks(partial, gridDim.x);
  if (threadIdx.x == 0) finish(sum);
}

template <class Term, class Finish>
void total(const Exec& exec, const Tensor& x, const Term& term, const Finish& finish) {
  const int64_t count = x.count();
  const TotalParts parts(count);
  auto* partial = reinterpret_cast<double*>(exec.scratch.data());
  const auto run = [&](const auto& numbers) {
    launch(exec, total_kernel<std::decay_t<decltype(numbers)>, Term, Finish>, dim3(static_cast<unsigned>(parts.blocks)),
           kThreads, 0, numbers, count, parts.each, partial, term, finish);
  };
  if (x.contiguous() && Packed<Either>::takes(x.view({count}), 4)) return run(Packed<Either>(x.view({count})));
  run(Loose<double>(x));
}

// What a check found goes back to the host; integers, so atomics keep it exact.
struct Found {
  unsigned long long count, first;
};
constexpr unsigned long long kNone = ~0ULL;
__device__ Found found_so_far = {0, kNone};

// check(i): which of the N numbers of pack i are found, as bits.
template <int N, class Check>
__global__ void __launch_bounds__(kThreads)
    find_kernel(int64_t packs, const __grid_constant__ Check check, Found* on_host) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < packs;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const unsigned bits = check(i);
    if (bits == 0) continue;
    atomicAdd(&found_so_far.count, static_cast<unsigned long long>(__popc(bits)));
    atomicMin(&found_so_far.first, static_cast<unsigned long long>(N * i + __ffs(static_cast<int>(bits)) - 1));
  }
  if (!last_block() || threadIdx.x != 0) return;
  on_host->count = atomicExch(&found_so_far.count, 0);
  on_host->first = atomicExch(&found_so_far.first, kNone);
}

template <int N, class Check>
Found find(const Exec& exec, int64_t packs, const Check& check) {
  stop_recording();  // the host reads
  static Found* const on_host = [] {
    void* slot = nullptr;
    return cudaHostAlloc(&slot, sizeof(Found), cudaHostAllocMapped) == cudaSuccess ? static_cast<Found*>(slot)
                                                                                   : nullptr;
  }();
  const Found nothing{0, kNone};
  if (packs == 0) return nothing;
  constexpr int64_t kMost = 2048;
  const auto grid = static_cast<unsigned>(std::min((packs + kThreads - 1) / kThreads, kMost));
  launch_after(stream_of(exec), find_kernel<N, Check>, grid, kThreads, 0, packs, check, on_host);
  const bool done = on_host != nullptr && cudaStreamSynchronize(stream_of(exec)) == cudaSuccess;
  note_launch();
  return done ? *on_host : nothing;
}

}  // namespace

void fill(const Exec& exec, const FillArgs& a) noexcept {
  const bool single = a.y.dtype() == DType::f32 || a.y.dtype() == DType::bf16;
  single ? fill_as<float>(exec, a) : fill_as<double>(exec, a);
}

void copy(const Exec& exec, const CopyArgs& a) noexcept {
  in_real(a.y, [&](auto r) { copy_as<decltype(r)>(exec, a); });
}

void add(const Exec& exec, const AddArgs& a) noexcept {
  in_real(a.y, [&](auto r) { add_as<decltype(r)>(exec, a); });
}

void sum(const Exec& exec, const SumArgs& a) noexcept {
  const View y(a.y);
  const double factor = a.factor;
  total(
      exec, a.x, [] __device__(double v) { return v; }, [=] __device__(double s) { y.set(0, s * factor); });
}

void sum_squares(const Exec& exec, const SumSquaresArgs& a) noexcept {
  const View y(a.y);
  total(
      exec, a.x, [] __device__(double v) { return v * v; }, [=] __device__(double s) { y.put(0, s, true); });
}

void nonfinite(const Exec& exec, const NonfiniteArgs& a) noexcept {
  const int64_t count = a.x.count();
  Found found{0, kNone};
  if (a.x.contiguous() && Packed<Either>::takes(a.x.view({count}), 4)) {
    const Packed<Either> x(a.x.view({count}));
    found = find<4>(exec, count / 4, [=] __device__(int64_t i) {
      float v[4];
      x.load(0, 4 * i, v);
      unsigned bits = 0;
      for (int k = 0; k < 4; ++k) bits |= isfinite(v[k]) ? 0U : 1U << k;
      return bits;
    });
  } else {
    const Loose<double> x(a.x);
    found = find<1>(exec, count, [=] __device__(int64_t i) {
      double v[1];
      x.load(0, i, v);
      return isfinite(v[0]) ? 0U : 1U;
    });
  }
  *a.count = static_cast<int64_t>(found.count);
  *a.first = found.count == 0 ? -1 : static_cast<int64_t>(found.first);
}

void outside(const Exec& exec, const OutsideArgs& a) noexcept {
  const View ids(a.ids), spans(a.spans);
  const int64_t limit = a.limit, allowed = a.allowed, width = a.spans.defined() ? a.ids.dim(1) : 1;
  const Found found = find<1>(exec, a.ids.count(), [=] __device__(int64_t i) {
    if (spans) {
      const int64_t row = i / width, column = i % width;
      if (column < spans.id(2 * row) || column >= spans.id(2 * row + 1)) return 0U;
    }
    const int64_t id = ids.id(i);
    return (id < 0 || id >= limit) && id != allowed ? 1U : 0U;
  });
  *a.first = found.count == 0 ? -1 : static_cast<int64_t>(found.first);
}

// The GPU multiplies row-major weights; its table never asks for tiles.
void pack_tiles(const Exec&, const PackTilesArgs&) noexcept {}

}  // namespace qkv::kernels::cuda

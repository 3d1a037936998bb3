// A stable counting sort, ten bits of the id at a time. A block has a chunk of 1024 rows: it counts them by digit, finds
// where each digit of its chunk begins, and puts them there in order. Counts are integers, so the order is exact.
#include "kernels/cuda/rows/sort.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kBits = 10, kDigits = 1 << kBits, kChunk = 1024, kRounds = kChunk / kThreads;

struct Pass {
  const int32_t *keys, *rows;  // rows is absent in the first pass: 0, 1, 2 ...
  int32_t *to_keys, *to_rows;
  int32_t *counts, *totals;  // [digits, chunks] and [digits]; absent for a single chunk
  int64_t count, chunks;
  int shift, digits;
  __device__ int digit(int64_t i) const { return (keys[i] >> shift) & (kDigits - 1); }
};

__global__ void __launch_bounds__(kThreads) count_digits(Recorded recorded, Pass p) {
  __shared__ int32_t counts[kDigits];
  let_next_start(recorded);
  wait_for_last();
  for (int d = threadIdx.x; d < p.digits; d += kThreads) counts[d] = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kChunk;
  for (int64_t i = first + threadIdx.x; i < min(first + kChunk, p.count); i += kThreads)
    atomicAdd(&counts[p.digit(i)], 1);
  __syncthreads();
  for (int d = threadIdx.x; d < p.digits; d += kThreads) p.counts[d * p.chunks + blockIdx.x] = counts[d];
}

// The sum of x over the threads before this one.
__device__ int32_t sum_before(int32_t x) {
  __shared__ int32_t warps[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int32_t sum = x;
  for (int far = 1; far < 32; far *= 2) {
    const int32_t other = __shfl_up_sync(0xffffffffU, sum, far);
    if (lane >= far) sum += other;
  }
  __syncthreads();
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += warps[w];
  return sum - x;
}

// Counts become the sums of those before them: each thread has a run of neighbours.
__device__ void to_places(int32_t* counts, int count) {
  const int run = (count + kThreads - 1) / kThreads, begin = static_cast<int>(threadIdx.x) * run,
            end = min(begin + run, count);
  int32_t total = 0;
  for (int i = begin; i < end; ++i) total += counts[i];
  int32_t place = sum_before(total);
  for (int i = begin; i < end; ++i) {
    const int32_t here = counts[i];
    counts[i] = place;
    place += here;
  }
}
// The rows of each digit in earlier chunks, and in all: a warp per digit.
__global__ void __launch_bounds__(kThreads) count_before(Recorded recorded, Pass p) {
  let_next_start(recorded);
  wait_for_last();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t d = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (d >= p.digits) return;
  int32_t before = 0;
  for (int64_t first = 0; first < p.chunks; first += 32) {
    const int64_t i = first + lane;
    const int32_t here = i < p.chunks ? p.counts[d * p.chunks + i] : 0;
    int32_t sum = here;
    for (int far = 1; far < 32; far *= 2) {
      const int32_t other = __shfl_up_sync(0xffffffffU, sum, far);
      if (lane >= far) sum += other;
    }
    if (i < p.chunks) p.counts[d * p.chunks + i] = before + sum - here;
    before += __shfl_sync(0xffffffffU, sum, 31);
  }
  if (lane == 0) p.totals[d] = before;
}

// A warp has 128 neighbours of the chunk, 32 at a time.
__global__ void __launch_bounds__(kThreads) put_in_place(Recorded recorded, Pass p) {
  __shared__ int32_t places[kWarps][kDigits], starts[kDigits];
  let_next_start(recorded);
  wait_for_last();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = threadIdx.x; i < kWarps * kDigits; i += kThreads) places[i / kDigits][i % kDigits] = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kChunk + warp * (kChunk / kWarps);
  // f(row, digit, lanes with the same digit) for this thread's rows; one lane of those counts them after.
  const auto walk = [&](auto f) {
    for (int round = 0; round < kRounds; ++round) {
      const int64_t i = first + 32 * round + lane;
      const unsigned here = __ballot_sync(0xffffffffU, i < p.count);
      if (i < p.count) {
        const int d = p.digit(i);
        const unsigned same = __match_any_sync(here, d);
        f(i, d, same);
        __syncwarp(here);
        if (lane == __ffs(static_cast<int>(same)) - 1) places[warp][d] += __popc(same);
      }
      __syncwarp();
    }
  };
  walk([](int64_t, int, unsigned) {});
  __syncthreads();
  for (int d = threadIdx.x; d < p.digits; d += kThreads) {
    int32_t all = 0;
    for (int w = 0; w < kWarps; ++w) all += places[w][d];
    starts[d] = p.counts != nullptr ? p.totals[d] : all;
  }
  __syncthreads();
  to_places(starts, p.digits);
  __syncthreads();
  for (int d = threadIdx.x; d < p.digits; d += kThreads) {
    int32_t place = starts[d] + (p.counts != nullptr ? p.counts[d * p.chunks + blockIdx.x] : 0);
    for (int w = 0; w < kWarps; ++w) {
      const int32_t here = places[w][d];
      places[w][d] = place;
      place += here;
    }
  }
  __syncthreads();
  walk([&](int64_t i, int d, unsigned same) {
    const int32_t to = places[warp][d] + __popc(same & ((1U << lane) - 1));
    p.to_rows[to] = p.rows != nullptr ? p.rows[i] : static_cast<int32_t>(i);
    p.to_keys[to] = p.keys[i];
  });
}

int64_t padded(int64_t numbers) {
  return (numbers * static_cast<int64_t>(sizeof(int32_t)) + 255) / 256 * 256;
}

}  // namespace

int64_t sort_bytes(int64_t count) {
  return 2 * padded(count) + padded(kDigits * ((count + kChunk - 1) / kChunk + 1));
}

void sort_by_id(const Exec& exec, const int32_t* ids, int64_t count, int64_t limit, int32_t* order, int32_t* sorted,
                std::byte* room) {
  if (count <= 0) return;
  int passes = 1;
  while (passes * kBits < 31 && limit > int64_t{1} << (passes * kBits)) ++passes;
  auto* rows = reinterpret_cast<int32_t*>(room);
  auto* keys = reinterpret_cast<int32_t*>(room + padded(count));
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  Pass p{.keys = ids, .count = count, .chunks = chunks};
  for (int pass = 0; pass < passes; ++pass) {
    const bool to_result = (passes - pass) % 2 == 1;
    p.to_keys = to_result ? sorted : keys;
    p.to_rows = to_result ? order : rows;
    p.shift = pass * kBits;
    p.digits = static_cast<int>(std::min<int64_t>(((limit - 1) >> p.shift) + 1, kDigits));
    p.totals = chunks > 1 ? reinterpret_cast<int32_t*>(room + 2 * padded(count)) : nullptr;
    p.counts = chunks > 1 ? p.totals + kDigits : nullptr;
    const auto grid = static_cast<unsigned>(chunks);
    if (chunks > 1) {
      launch(exec, count_digits, grid, kThreads, 0, p);
      launch(exec, count_before, static_cast<unsigned>((p.digits + kWarps - 1) / kWarps), kThreads, 0, p);
    }
    launch(exec, put_in_place, grid, kThreads, 0, p);
    p.keys = p.to_keys;
    p.rows = p.to_rows;
  }
}

}  // namespace qkv::kernels::cuda

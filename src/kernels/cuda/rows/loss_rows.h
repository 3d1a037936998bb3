// A row of logits: its loss, and the gradients that take its place. A block has a row.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/packed.h"
#include "kernels/cuda/ptx.h"

namespace qkv::kernels::cuda {

constexpr int kPack = 8;  // logits of a thread side by side
template <class L>
struct alignas(16) LogitPack {
  static constexpr int kWords = kPack * sizeof(L) / 4;
  uint32_t words[kWords];

  __device__ void read(const L* from) { read_words<kWords>(reinterpret_cast<const std::byte*>(from), words); }
  __device__ void write(L* to) const { write_words<kWords>(reinterpret_cast<std::byte*>(to), words); }
  template <class R>
  __device__ R get(int i) const {
    return static_cast<R>(reinterpret_cast<const L*>(words)[i]);
  }
  template <class R>
  __device__ void set(const R (&x)[kPack]) {
    if constexpr (sizeof(L) == 2) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
        words[i] = *reinterpret_cast<const uint32_t*>(&pair);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i) reinterpret_cast<L*>(words)[i] = static_cast<L>(x[i]);
    }
  }
};

inline int64_t padded(int64_t vocabulary) {  // rows at multiples of 128 bytes, also of bf16
  constexpr int64_t kLine = 64;
  return (vocabulary + kLine - 1) / kLine * kLine;
}
constexpr int kHeadThreads = 512;  // of a row

template <class R, class L>
struct HeadRule {
  R smoothing, z_loss, cap;
  int32_t vocabulary;
  int64_t ignore, stride;

  HeadRule(const CrossEntropyRule& rule, const Tensor& logits)
      : smoothing(static_cast<R>(rule.smoothing)),
        z_loss(static_cast<R>(rule.z_loss)),
        cap(static_cast<R>(rule.softcap)),
        vocabulary(static_cast<int32_t>(logits.dim(1))),
        ignore(rule.ignore),
        stride(logits.stride(0)) {}

  __device__ R capped(R x) const { return cap > 0 ? cap * tanh(x / cap) : x; }

  // exp(x - shift). Where logits were rounded to bf16 the fast exponential is exact enough.
  struct Exponential {
    R shift;

    __device__ explicit Exponential(R s) : shift(sizeof(L) == 2 ? -s * kLog2e : s) {}
    __device__ R operator()(R x) const {
      if constexpr (sizeof(L) == 2) return fast_exp2(fma(x, kLog2e, shift));
      return exp(x - shift);
    }
    static constexpr R kLog2e = static_cast<R>(1.44269504088896341);
  };

  // The packs of this thread: f(first entry, capped logits). What lies past the vocabulary is -inf. Some packs are called for
  // before the first is used, since f may write where it read: kChunk logits of all threads. done(first entry) follows each chunk.
  static constexpr int kAtOnce = sizeof(L) == 2 ? 4 : 1, kStep = kPack * kHeadThreads, kChunk = kAtOnce * kStep;
  template <class Done, class F>
  __device__ __forceinline__ void each(const L* row, Done done, F f) const {
    for (int32_t chunk = 0; chunk < vocabulary; chunk += kChunk) {
      const int32_t first = chunk + kPack * static_cast<int32_t>(threadIdx.x);
      LogitPack<L> packs[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (first + u * kStep < vocabulary) packs[u].read(row + first + u * kStep);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int32_t v = first + u * kStep;
        if (v >= vocabulary) break;
        R x[kPack];
#pragma unroll
        for (int i = 0; i < kPack; ++i) x[i] = packs[u].template get<R>(i);
        if (cap > 0) {
#pragma unroll
          for (int i = 0; i < kPack; ++i) x[i] = capped(x[i]);
        }
        if (v + kPack > vocabulary) {
#pragma unroll
          for (int i = 0; i < kPack; ++i) x[i] = v + i < vocabulary ? x[i] : -static_cast<R>(INFINITY);
        }
        f(v, x);
      }
      done(chunk);
    }
  }
  template <class F>
  __device__ __forceinline__ void each(const L* row, F f) const {
    each(
        row, [](int32_t) {}, f);
  }

  // Of a row: log of the sum of all exponentials, and the sum of all logits where smoothing needs it.
  struct Sums {
    R lse, all;
  };
  __device__ __forceinline__ Sums sums(const L* row) const {
    constexpr int kWarpsHere = kHeadThreads / 32;
    R highest = R(-1e38), total = 0, all = 0;  // so low, and finite in units of log(2): logits may be -inf
    each(row, [&](int32_t v, const R(&x)[kPack]) {
      R most = highest;
#pragma unroll
      for (int i = 0; i < kPack; ++i) most = x[i] > most ? x[i] : most;
      const Exponential from_most(most);
      total *= from_most(highest);
      highest = most;
#pragma unroll
      for (int i = 0; i < kPack; ++i) total += from_most(x[i]);
      if (smoothing > 0) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) all += v + i < vocabulary ? x[i] : R{0};
      }
    });
    const R most = block_max<kWarpsHere>(highest);
    total = block_sum<kWarpsHere>(total * Exponential(most)(highest));
    if (smoothing > 0) all = block_sum<kWarpsHere>(all);
    return {most + log(total), all};
  }
  __device__ R loss(int32_t target, R at_target, Sums of) const {
    if (target == ignore) return 0;
    R loss = (1 - smoothing) * (of.lse - at_target) + z_loss * of.lse * of.lse;
    if (smoothing > 0) loss += smoothing * (of.lse - of.all / static_cast<R>(vocabulary));
    return loss;
  }

  // Logits become gradients of the row's loss, zeros if its target is ignored.
  template <class Done>
  __device__ __forceinline__ void gradients(L* row, R lse, int32_t target, Done done) const {
    const bool ignored = target == ignore;
    const R weight = 1 + 2 * z_loss * lse, everywhere = smoothing / static_cast<R>(vocabulary);
    const Exponential from_lse(lse);
    each(row, done, [&](int32_t v, const R(&x)[kPack]) {
      R d[kPack];
#pragma unroll
      for (int i = 0; i < kPack; ++i) d[i] = from_lse(x[i]) * weight - everywhere;
      if (static_cast<uint32_t>(target - v) < kPack) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) d[i] = v + i == target ? d[i] - (1 - smoothing) : d[i];
      }
      if (cap > 0) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) d[i] *= 1 - x[i] / cap * (x[i] / cap);
      }
      if (ignored) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) d[i] = 0;
      }
      LogitPack<L> out;
      out.set(d);
      out.write(row + v);
    });
  }
  __device__ __forceinline__ void gradients(L* row, R lse, int32_t target) const {
    gradients(row, lse, target, [](int32_t) {});
  }
};

// Logits of some rows and what becomes of them.
template <class R, class L>
struct HeadRows {
  L* logits;
  const int32_t* targets;
  R *losses, *lses;
};

// Losses, and logits become their gradients, all in shared memory: the copy engine brings a row and takes it back in chunks, each
// followed by the one that the next row has there, while the other block of the processor looks at its own. On Hopper, where two
// rows fit.
template <class R, class L>
__global__ void __launch_bounds__(kHeadThreads, 2)
    losses_and_gradients(const __grid_constant__ HeadRule<R, L> rule, const __grid_constant__ HeadRows<R, L> of,
                         int64_t count, int bytes) {
#if __CUDA_ARCH__ >= 900
  unsigned char* const row_bytes = dynamic_shared<128>();
  __shared__ uint64_t arrived;
  constexpr int kChunk = HeadRule<R, L>::kChunk, kChunkBytes = kChunk * sizeof(L);
  const uint32_t here = shared_address(row_bytes), barrier = shared_address(&arrived);
  L* const row = reinterpret_cast<L*>(row_bytes);
  const bool copies = threadIdx.x == 0;
  const auto bytes_of = [&](int32_t chunk) { return min(kChunkBytes, bytes - chunk * static_cast<int>(sizeof(L))); };
  const auto load = [&](int64_t r, int32_t chunk) {
    load_bytes(here + chunk * sizeof(L), of.logits + r * rule.stride + chunk, bytes_of(chunk), barrier);
  };
  wait_for_last();
  if (copies) {
    barrier_init(barrier, 1);
    fence_for_barriers();
    barrier_expect(barrier, static_cast<uint32_t>(bytes));
    for (int32_t chunk = 0; chunk < rule.vocabulary; chunk += kChunk) load(blockIdx.x, chunk);
  }
  __syncthreads();
  uint32_t phase = 0;
  for (int64_t r = blockIdx.x; r < count; r += gridDim.x, phase ^= 1) {
    const int32_t target = of.targets[r];
    const int64_t next = r + gridDim.x;
    barrier_wait(barrier, phase);
    const R at_target = target != rule.ignore ? rule.capped(static_cast<R>(row[target])) : R{0};
    const auto sums = rule.sums(row);
    int32_t last = 0;
    rule.gradients(row, sums.lse, target, [&](int32_t chunk) {
      fence_for_copies();
      __syncthreads();
      last = chunk;
      if (!copies) return;
      store_bytes(of.logits + r * rule.stride + chunk, here + chunk * sizeof(L), bytes_of(chunk));
      if (next >= count) return;
      if (chunk == 0) return barrier_expect(barrier, static_cast<uint32_t>(bytes));
      wait_for_copies_out<1>();
      load(next, chunk - kChunk);
    });
    if (copies) {
      of.losses[r] = rule.loss(target, at_target, sums);
      of.lses[r] = sums.lse;
      wait_for_copies_out<0>();
      if (next < count) load(next, last);
    }
  }
#endif
}

template <class R, class L>
bool in_shared_memory(const Exec& exec, const HeadRule<R, L>& rule, const HeadRows<R, L>& rows, int64_t count) {
  constexpr int64_t kMostShared = 113 << 10;  // of one of two blocks
  const int64_t bytes = padded(rule.vocabulary) * static_cast<int64_t>(sizeof(L));
  const bool fits = hopper() && bytes <= kMostShared && rule.stride * static_cast<int64_t>(sizeof(L)) >= bytes &&
                    rule.stride % kPack == 0 && reinterpret_cast<uintptr_t>(rows.logits) % 16 == 0;
  if (!fits || cudaFuncSetAttribute(losses_and_gradients<R, L>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)) != cudaSuccess) {
    return false;
  }
  const auto grid = static_cast<unsigned>(std::min<int64_t>(count, 2 * multiprocessors()));
  launch(exec, losses_and_gradients<R, L>, grid, kHeadThreads, static_cast<size_t>(bytes), rule, rows, count,
         static_cast<int>(bytes));
  return true;
}

}  // namespace qkv::kernels::cuda

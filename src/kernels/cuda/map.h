// Kernels that take tensors number by number.
#pragma once

#include <array>

#include "kernels/cuda/packed.h"

namespace qkv::kernels::cuda {

// f(i) for each number of packs y[output][i].
template <class R, int kOuts, int N, class F>
__device__ void each_of(const R (&)[kOuts][N], const F& f) {
#pragma unroll
  for (int i = 0; i < N; ++i) f(i);
}

template <class A, int kOuts, int kIns>
struct MapArgs {
  A outs[kOuts], ins[kIns > 0 ? kIns : 1];
  bool add[kOuts];
  int64_t packs, per_row;
};

// Two packs a thread, both asked for before either is used.
template <class A, int N, int kOuts, int kIns, class F>
__global__ void __launch_bounds__(kThreads)
    run_map(Recorded recorded, const __grid_constant__ MapArgs<A, kOuts, kIns> m, const __grid_constant__ F f) {
  using R = typename A::Real;
  constexpr int kAtOnce = 2, kRead = kIns > 0 ? kIns : 1;
  let_next_start(recorded);
  wait_for_last();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kAtOnce;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kAtOnce + threadIdx.x; first < m.packs;
       first += step) {
    int64_t row[kAtOnce], column[kAtOnce];
    typename A::template Raw<N> raw[kAtOnce][kRead];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t i = first + u * kThreads;
      if (i >= m.packs) continue;
      row[u] = m.per_row == m.packs    ? 0
               : m.packs <= UINT32_MAX ? static_cast<uint32_t>(i) / static_cast<uint32_t>(m.per_row)
                                       : i / m.per_row;
      column[u] = (i - row[u] * m.per_row) * N;
#pragma unroll
      for (int k = 0; k < kIns; ++k) raw[u][k] = m.ins[k].template fetch<N>(row[u], column[u]);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (first + u * kThreads >= m.packs) continue;
      R in[kRead][N], out[kOuts][N];
#pragma unroll
      for (int k = 0; k < kIns; ++k) m.ins[k].numbers(raw[u][k], in[k]);
      f(in, out);
#pragma unroll
      for (int k = 0; k < kOuts; ++k) {
        if (m.outs[k]) m.outs[k].put(row[u], column[u], out[k], m.add[k]);
      }
    }
  }
}

template <class A, int N, int kOuts, int kIns, class F>
void launch_map(const Exec& exec, const std::array<Grad, kOuts>& outs, const std::array<Tensor, kIns>& ins,
                int64_t rows, int64_t columns, const F& f) {
  MapArgs<A, kOuts, kIns> m{};
  for (int k = 0; k < kOuts; ++k) {
    m.outs[k] = A(outs[k].tensor);
    m.add[k] = outs[k].add;
  }
  for (int k = 0; k < kIns; ++k) m.ins[k] = A(ins[k]);
  m.per_row = columns / N;
  m.packs = rows * m.per_row;
  const int64_t each = 2 * kThreads;
  launch(exec, run_map<A, N, kOuts, kIns, F>, static_cast<unsigned>(std::min((m.packs + each - 1) / each, kMostBlocks)),
         kThreads, 0, m, f);
}

// f(x, y) for every pack: numbers x[input][i] of the ins give y[output][i] for the outs, written or added. All tensors
// have as many elements; outputs may be absent, all but one.
template <class R, size_t kOuts, size_t kIns, class F>
void map(const Exec& exec, std::array<Grad, kOuts> outs, std::array<Tensor, kIns> ins, const F& f) {
  constexpr int kO = static_cast<int>(kOuts), kI = static_cast<int>(kIns);
  int64_t count = 0, columns = 0;
  bool flat = true, same = true;
  const auto look = [&](const Tensor& t) {
    if (!t.defined()) return;
    same = same && (count == 0 || t.cols() == columns);
    count = t.count();
    columns = t.cols();
    flat = flat && t.contiguous();
  };
  for (const Grad& g : outs) look(g.tensor);
  for (const Tensor& t : ins) look(t);
  if (count == 0) return;
  if constexpr (sizeof(R) == sizeof(float)) {
    if (flat) {  // one long row
      columns = count;
      for (Grad& g : outs) {
        if (g) g.tensor = g.tensor.view({count});
      }
      for (Tensor& t : ins) t = t.view({count});
    }
    const auto run = [&]<class A, int N>(A, Count<N>) {
      const bool takes = (flat || same) &&
                         std::all_of(outs.begin(), outs.end(), [](auto& g) { return A::takes(g.tensor, N); }) &&
                         std::all_of(ins.begin(), ins.end(), [](auto& t) { return A::takes(t, N); });
      if (takes) launch_map<A, N, kO, kI>(exec, outs, ins, count / columns, columns, f);
      return takes;
    };
    if (run(Packed<__nv_bfloat16>{}, Count<8>{}) || run(Packed<Either>{}, Count<4>{})) return;
  }
  launch_map<Loose<R>, 1, kO, kI>(exec, outs, ins, 1, count, f);
}

}  // namespace qkv::kernels::cuda

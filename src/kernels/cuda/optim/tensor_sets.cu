// AdamW and squares of all weights of a model at once.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/optim/adamw.h"
#include "kernels/cuda/optim/tensor_table.h"
#include "kernels/cuda/total.h"

namespace qkv::kernels::cuda {
namespace {

struct Squares {
  Packed<float> x;
  int64_t count, each;
  double* y;
};

__global__ void __launch_bounds__(kThreads)
    square_blocks(const __grid_constant__ TensorTable<Squares> table, double* partial) {
  wait_for_last();
  const int t = table.find(blockIdx.x);
  const Squares& s = table.of[t];
  const int64_t begin = (blockIdx.x - table.first[t]) * s.each;
  const double sum = block_total(s.x, begin, min(begin + s.each, s.count), [](double v) { return v * v; });
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(kThreads)
    square_totals(const __grid_constant__ TensorTable<Squares> table, const double* partial) {
  wait_for_last();
  const int t = static_cast<int>(blockIdx.x);
  const double sum = total_of_blocks(partial + table.first[t], table.first[t + 1] - table.first[t]);
  if (threadIdx.x == 0) *table.of[t].y += sum;
}

struct Weight {
  float4 *w, *m, *v;
  const float4* g;
  uint2* copy;  // of w in bf16, or absent
  int64_t fours;
  AdamWRule<float> rule;
};
constexpr int kFours = 2;  // of a thread, all called for before the first is used

__global__ void __launch_bounds__(kThreads) adamw_blocks(const __grid_constant__ TensorTable<Weight> table) {
  wait_for_last();
  const int t = table.find(blockIdx.x);
  const Weight& a = table.of[t];
  const int64_t begin = int64_t{blockIdx.x - table.first[t]} * kThreads * kFours + threadIdx.x;
  float4 w[kFours], g[kFours], m[kFours], v[kFours];
#pragma unroll
  for (int u = 0; u < kFours; ++u) {
    const int64_t i = begin + u * kThreads;
    if (i >= a.fours) continue;
    w[u] = a.w[i];
    g[u] = a.g[i];
    m[u] = a.m[i];
    v[u] = a.v[i];
  }
#pragma unroll
  for (int u = 0; u < kFours; ++u) {
    const int64_t i = begin + u * kThreads;
    if (i >= a.fours) continue;
    a.rule.step(w[u].x, g[u].x, m[u].x, v[u].x);
    a.rule.step(w[u].y, g[u].y, m[u].y, v[u].y);
    a.rule.step(w[u].z, g[u].z, m[u].z, v[u].z);
    a.rule.step(w[u].w, g[u].w, m[u].w, v[u].w);
    a.w[i] = w[u];
    a.m[i] = m[u];
    a.v[i] = v[u];
    if (a.copy != nullptr) {
      const __nv_bfloat162 low = __floats2bfloat162_rn(w[u].x, w[u].y), high = __floats2bfloat162_rn(w[u].z, w[u].w);
      a.copy[i] = {*reinterpret_cast<const uint32_t*>(&low), *reinterpret_cast<const uint32_t*>(&high)};
    }
  }
}

}  // namespace

void sum_squares_set(const Exec& exec, std::span<const SumSquaresArgs> all) noexcept {
  auto* partial = reinterpret_cast<double*>(exec.scratch.data());
  in_tables<Squares>(
      all,
      [&](TensorTable<Squares>& table, const SumSquaresArgs& a) {
        if (!in_fours<float>(a.x) || a.y.dtype() != DType::f64) return sum_squares(exec, a);
        const TotalParts parts(a.x.count());
        table.add({Packed<float>(a.x.view({a.x.count()})), a.x.count(), parts.each, a.y.as<double>()}, parts.blocks);
      },
      [&](const TensorTable<Squares>& table) {
        const unsigned blocks = table.first[table.count];
        launch(exec, square_blocks, blocks, kThreads, 0, table, partial);
        launch(exec, square_totals, static_cast<unsigned>(table.count), kThreads, 0, table, partial);
      });
}

void adamw_set(const Exec& exec, std::span<const AdamWArgs> all) noexcept {
  in_tables<Weight>(
      all,
      [&](TensorTable<Weight>& table, const AdamWArgs& a) {
        const bool fast = in_fours<float>(a.w) && in_fours<float>(a.g) && in_fours<float>(a.m) &&
                          in_fours<float>(a.v) && (!a.copy.defined() || in_fours<__nv_bfloat16>(a.copy));
        if (!fast) {
          adamw(exec, a);
          if (a.copy.defined()) copy(exec, {.y = a.copy, .x = a.w});
          return;
        }
        const int64_t fours = a.w.count() / 4, each = kThreads * kFours;
        table.add({a.w.as<float4>(), a.m.as<float4>(), a.v.as<float4>(), a.g.as<float4>(),
                   a.copy.defined() ? a.copy.as<uint2>() : nullptr, fours, AdamWRule<float>(a)},
                  (fours + each - 1) / each);
      },
      [&](const TensorTable<Weight>& table) {
        launch(exec, adamw_blocks, table.first[table.count], kThreads, 0, table);
      });
}

}  // namespace qkv::kernels::cuda

// Optimiser steps on f32 weights; formulas in ops/optim.cpp.
#include <cmath>

#include "kernels/cpu/shared.h"

namespace qkv::kernels::cpu {

void adamw(const Exec& exec, const AdamWArgs& a, const IsaKernels& isa) noexcept {
  if (!all_f32({&a.w, &a.g, &a.m, &a.v})) return ref::adamw(ref::Split(*exec.pool), a);
  const auto step = static_cast<double>(a.step);
  const auto correction1 = static_cast<float>(1 - std::pow(a.beta1, step));
  over_thread_ranges(exec, a.w.count(), 64, [&](Range range, int) {
    isa.adamw_step({.w = a.w.as<float>() + range.begin,
                    .m = a.m.as<float>() + range.begin,
                    .v = a.v.as<float>() + range.begin,
                    .g = a.g.as<float>() + range.begin,
                    .count = range.end - range.begin,
                    .beta1 = static_cast<float>(a.beta1),
                    .beta2 = static_cast<float>(a.beta2),
                    .eps = static_cast<float>(a.eps),
                    .factor = static_cast<float>(a.grad_factor),
                    .shrink = static_cast<float>(1 - a.lr * a.decay),
                    .rate = static_cast<float>(a.lr) / correction1,
                    .root2 = static_cast<float>(std::sqrt(1 - std::pow(a.beta2, step)))});
  });
}

void sgd(const Exec& exec, const SgdArgs& a, const IsaKernels& isa) noexcept {
  if (!all_f32({&a.w, &a.g, &a.buffer})) return ref::sgd(ref::Split(*exec.pool), a);
  over_thread_ranges(exec, a.w.count(), 64, [&](Range range, int) {
    isa.sgd_step({.w = a.w.as<float>() + range.begin,
                  .buffer = a.buffer.defined() ? a.buffer.as<float>() + range.begin : nullptr,
                  .g = a.g.as<float>() + range.begin,
                  .count = range.end - range.begin,
                  .rate = static_cast<float>(a.lr),
                  .momentum = static_cast<float>(a.momentum),
                  .decay = static_cast<float>(a.decay),
                  .factor = static_cast<float>(a.grad_factor)});
  });
}

// Chunks depend on the count alone and their sums are added in order, so the number of threads changes no bit.
void sum_squares(const Exec& exec, const SumSquaresArgs& a, const IsaKernels& isa) noexcept {
  if (!is_float(a.x) || !a.x.contiguous()) return ref::sum_squares(ref::Split(*exec.pool), a);
  constexpr int64_t kMostChunks = 4096, kSmallestChunk = 16384;
  const int64_t count = a.x.count(), each = (count + kMostChunks - 1) / kMostChunks;
  const int64_t chunk = std::max(kSmallestChunk, (each + 63) / 64 * 64), chunks = (count + chunk - 1) / chunk;
  auto* sums = reinterpret_cast<double*>(exec.scratch.data());
  over_thread_ranges(exec, chunks, 1, [&](Range range, int) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      sums[i] = isa.squares(float_row_at(a.x, i * chunk), std::min(chunk, count - i * chunk));
    }
  });
  double total = 0;
  for (int64_t i = 0; i < chunks; ++i) total += sums[i];
  *a.y.as<double>() += total;
}

}  // namespace qkv::kernels::cpu

// Per step, two loaded vectors times some kept ones, each into its own accumulator. Twelve accumulators hide the
// latency of two FMA units and are not bound by loads. Include after defining Vector and multiply_add.
#pragma once

#include "loops.h"

namespace qkv::bench {
namespace {

constexpr int64_t kSteps = kPanelBytes / (2 * int64_t{sizeof(Vector)});
constexpr int kKept = sizeof(Vector) == 16 ? 4 : 6;  // without a fused multiply-add one more register is needed
constexpr double kMultiplyAdds = static_cast<double>(kSteps) * 2 * kKept;  // vectors of them, one round

void products(const void* data, int64_t rounds, void* sink) noexcept {
  const Vector* panel = static_cast<const Vector*>(data);
  Vector kept[kKept], sums[2 * kKept] = {};
  for (int i = 0; i < kKept; ++i) kept[i] = panel[i];
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t step = 0; step < kSteps; ++step) {
      const Vector a = panel[2 * step], b = panel[2 * step + 1];
#pragma GCC unroll 6
      for (int i = 0; i < kKept; ++i) {
        sums[2 * i] = multiply_add(kept[i], a, sums[2 * i]);
        sums[2 * i + 1] = multiply_add(kept[i], b, sums[2 * i + 1]);
      }
    }
  }
  static_assert(sizeof sums <= kSinkBytes);
  __builtin_memcpy(sink, sums, sizeof sums);
}

}  // namespace
}  // namespace qkv::bench

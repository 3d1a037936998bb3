// The token a greedy text continues with, so that logits need not go to the host.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kChoosers = 1024;

struct Highest {
  float value = -INFINITY;
  int at = INT32_MAX;
  bool finite = true;

  __device__ void take(const Highest& other) {
    if (other.value > value || (other.value == value && other.at < at)) {
      value = other.value;
      at = other.at;
    }
    finite = finite && other.finite;
  }
  __device__ void take_all_of_warp() {
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      take({__shfl_xor_sync(~0U, value, lanes), __shfl_xor_sync(~0U, at, lanes),
            __shfl_xor_sync(~0U, finite ? 1 : 0, lanes) != 0});
    }
  }
};

// A block per row.
__global__ void __launch_bounds__(kChoosers) find_highest(int32_t* ids, const float* x, int64_t stride, int width) {
  __shared__ Highest of_warps[kChoosers / 32];
  let_next_start();
  wait_for_last();
  const float* row = x + blockIdx.x * stride;
  Highest best;
  const auto look = [&](float v, int i) { best.take({v, i, isfinite(v)}); };
  const int packed = reinterpret_cast<uintptr_t>(row) % 16 == 0 ? width / 4 * 4 : 0;
#pragma unroll 8
  for (int i = 4 * static_cast<int>(threadIdx.x); i < packed; i += 4 * kChoosers) {
    const float4 v = *reinterpret_cast<const float4*>(row + i);
    look(v.x, i);
    look(v.y, i + 1);
    look(v.z, i + 2);
    look(v.w, i + 3);
  }
  for (int i = packed + static_cast<int>(threadIdx.x); i < width; i += kChoosers) look(row[i], i);
  best.take_all_of_warp();
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  best = of_warps[threadIdx.x];
  best.take_all_of_warp();
  if (threadIdx.x == 0) ids[blockIdx.x] = best.finite ? best.at : -1;
}

}  // namespace

void first_highest(const Exec& exec, const FirstHighestArgs& a) noexcept {
  const int64_t rows = a.x.rows();
  if (rows == 0) return;
  launch(exec, find_highest, static_cast<unsigned>(rows), kChoosers, 0, a.ids.as<int32_t>(),
         static_cast<const float*>(a.x.as<float>()), a.x.stride(0), static_cast<int>(a.x.cols()));
}

}  // namespace qkv::kernels::cuda

#include "kernels/cuda/device.h"
#include "kernels/cuda/kernels.h"
#include "kernels/tables.h"

namespace qkv::kernels::cuda {

const Kernels& table() {
  static const Kernels kernels{.name = "cuda",
                               .rounds_norms = true,
                               .drops_sums = true,
                               .device = &device,
#define QKV_KERNEL(kernel, Args) .kernel = &cuda::kernel,
                               QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
                                   .linear_set = &linear_set,
                               .sum_squares_set = &sum_squares_set,
                               .adamw_set = &adamw_set,
                               .first_highest = &first_highest,
                               .cache_heads = &cache_heads,
                               .linear_backward_set = &linear_backward_set,
                               .muon_set = &muon_set};
  return kernels;
}

}  // namespace qkv::kernels::cuda

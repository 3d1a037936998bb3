// The products of src/kernels/cuda/wgmma.h in software.
#pragma once

#include <cstdint>

#include "tensor_cores.h"

namespace qkv::kernels::cuda {

template <int kA = 0, int kB = 0, int kSums>
void multiply_shared(float (&d)[kSums], uint64_t a, uint64_t b, int add = 1) {
  gpu_by_hand::add_product({.d = d,
                            .columns = 2 * kSums,
                            .a = a,
                            .b = b,
                            .add = add != 0,
                            .a_along_rows = kA != 0,
                            .b_along_rows = kB != 0});
}

template <int kB, int kSums>
void multiply_registers(float (&d)[kSums], const uint32_t (&a)[4], uint64_t b, int add) {
  gpu_by_hand::add_product({.d = d,
                            .columns = 2 * kSums,
                            .b = b,
                            .add = add != 0,
                            .from_registers = true,
                            .b_along_rows = kB != 0,
                            .registers = {a[0], a[1], a[2], a[3]}});
}

}  // namespace qkv::kernels::cuda

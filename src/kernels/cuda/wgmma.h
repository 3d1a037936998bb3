// wgmma m64nNk16, by a warpgroup: d = a b, or d += a b where `add` is not 0 or not asked for. bf16 operands, N / 2 f32
// sums in each thread's registers. b is a tile in shared memory, and so is a, or it is in registers (an accumulator's
// layout, packed to bf16, is the layout of a left operand). kA, kB: 1 where the rows of the left operand, the columns
// of the right one lie together in memory (MN-major), 0 where k does.
#pragma once

#include <cstdint>

#include "kernels/cuda/wgmma_lists.h"

namespace qkv::kernels::cuda {

// n columns have half as many sums; then come a, b, add, kA and kB, and the instruction calls each by its number.
#define QKV_WGMMA(n, sums, a_name, b_name, add_name, a_major, b_major)                                             \
  template <int kA = 0, int kB = 0>                                                                                \
  __device__ __forceinline__ void multiply_shared(float(&d)[sums], uint64_t a, uint64_t b, int add) {              \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_name ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n       \
                 "k16.f32.bf16.bf16 {" QKV_WGMMA_NAMES_##sums "}, %" #a_name ", %" #b_name ", p, 1, 1, %" #a_major \
                                                              ", %" #b_major ";\n}\n"                              \
                 : QKV_WGMMA_SUMS_##sums                                                                           \
                 : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));                                                    \
  }
QKV_WGMMA(64, 32, 32, 33, 34, 35, 36)
QKV_WGMMA(128, 64, 64, 65, 66, 67, 68)
QKV_WGMMA(136, 68, 68, 69, 70, 71, 72)
QKV_WGMMA(192, 96, 96, 97, 98, 99, 100)
QKV_WGMMA(200, 100, 100, 101, 102, 103, 104)
QKV_WGMMA(256, 128, 128, 129, 130, 131, 132)
#undef QKV_WGMMA

// Always added to, k together in both: nvcc arranges a kernel otherwise where `add` is a constant 1.
#define QKV_WGMMA(n, sums, a_name, b_name)                                                           \
  __device__ __forceinline__ void multiply_shared(float(&d)[sums], uint64_t a, uint64_t b) {         \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" QKV_WGMMA_NAMES_##sums \
                 "}, %" #a_name ", %" #b_name ", 1, 1, 1, 0, 0;\n"                                   \
                 : QKV_WGMMA_SUMS_##sums                                                             \
                 : "l"(a), "l"(b));                                                                  \
  }
QKV_WGMMA(8, 4, 4, 5)
QKV_WGMMA(16, 8, 8, 9)
QKV_WGMMA(32, 16, 16, 17)
QKV_WGMMA(64, 32, 32, 33)
#undef QKV_WGMMA

#define QKV_WGMMA(n, sums, a_0, a_1, a_2, a_3, b_name, add_name, b_major)                                           \
  template <int kB>                                                                                                 \
  __device__ __forceinline__ void multiply_registers(float(&d)[sums], const uint32_t(&a)[4], uint64_t b, int add) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_name ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n        \
                 "k16.f32.bf16.bf16 {" QKV_WGMMA_NAMES_##sums "}, {%" #a_0 ", %" #a_1 ", %" #a_2 ", %" #a_3         \
                                                              "}, %" #b_name ", p, 1, 1, %" #b_major ";\n}\n"       \
                 : QKV_WGMMA_SUMS_##sums                                                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kB));                          \
  }
QKV_WGMMA(64, 32, 32, 33, 34, 35, 36, 37, 38)
QKV_WGMMA(128, 64, 64, 65, 66, 67, 68, 69, 70)
#undef QKV_WGMMA

}  // namespace qkv::kernels::cuda

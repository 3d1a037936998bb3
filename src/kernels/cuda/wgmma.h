// wgmma m64nNk16, bf16 operands in shared memory, f32 sums in registers. kA, kB: 1 where the operand lies with its rows
// together in memory (MN-major), 0 where k does.
#pragma once

#include <cstdint>

#include "kernels/cuda/wgmma_lists.h"

namespace qkv::kernels::cuda {

template <int N>
struct Wgmma;

// n columns have half as many sums; then come a, b, add, kA and kB, and the instruction calls each by its number.
#define QKV_WGMMA(n, sums, a_name, b_name, add_name, a_major, b_major)                                               \
  template <>                                                                                                        \
  struct Wgmma<n> {                                                                                                  \
    template <int kA, int kB>                                                                                        \
    static __device__ __forceinline__ void multiply(float (&d)[sums], uint64_t a, uint64_t b, int add) {             \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_name ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n       \
                   "k16.f32.bf16.bf16 {" QKV_WGMMA_NAMES_##sums "}, %" #a_name ", %" #b_name ", p, 1, 1, %" #a_major \
                                                                ", %" #b_major ";\n}\n"                              \
                   : QKV_WGMMA_SUMS_##sums                                                                           \
                   : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));                                                    \
    }                                                                                                                \
  }
QKV_WGMMA(128, 64, 64, 65, 66, 67, 68);
QKV_WGMMA(136, 68, 68, 69, 70, 71, 72);
QKV_WGMMA(192, 96, 96, 97, 98, 99, 100);
QKV_WGMMA(200, 100, 100, 101, 102, 103, 104);
QKV_WGMMA(256, 128, 128, 129, 130, 131, 132);
#undef QKV_WGMMA

}  // namespace qkv::kernels::cuda

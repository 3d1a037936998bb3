// wgmma m64nNk16, bf16 operands in shared memory, f32 sums in registers. kA, kB: 1 where the operand lies with its rows
// together in memory (MN-major), 0 where k does.
#pragma once

#include <cstdint>

#include "kernels/cuda/wgmma_lists.h"

namespace qkv::kernels::cuda {

template <int N>
struct Wgmma;

template <>
struct Wgmma<128> {
  template <int kA, int kB>
  static __device__ __forceinline__ void multiply(float (&d)[64], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{" QKV_WGMMA_NAMES_64 "}, %64, %65, p, 1, 1, %67, %68;\n}\n"
        : QKV_WGMMA_SUMS_64
        : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));
  }
};

template <>
struct Wgmma<136> {
  template <int kA, int kB>
  static __device__ __forceinline__ void multiply(float (&d)[68], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %70, 0;\nwgmma.mma_async.sync.aligned.m64n136k16.f32.bf16.bf16 "
        "{" QKV_WGMMA_NAMES_68 "}, %68, %69, p, 1, 1, %71, %72;\n}\n"
        : QKV_WGMMA_SUMS_68
        : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));
  }
};

template <>
struct Wgmma<256> {
  template <int kA, int kB>
  static __device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{" QKV_WGMMA_NAMES_128 "}, %128, %129, p, 1, 1, %131, %132;\n}\n"
        : QKV_WGMMA_SUMS_128
        : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));
  }
};

}  // namespace qkv::kernels::cuda

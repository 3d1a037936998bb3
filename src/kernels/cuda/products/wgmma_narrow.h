// wgmma m64nNk16 for few columns: bf16 operands in shared memory, k together in both, f32 sums in registers, added to.
#pragma once

#include <cstdint>

#include "kernels/cuda/wgmma_lists.h"

namespace qkv::kernels::cuda {

template <int N>
struct NarrowWgmma;

template <>
struct NarrowWgmma<8> {
  static __device__ __forceinline__ void multiply(float (&d)[4], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {" QKV_WGMMA_NAMES_4 "}, %4, %5, 1, 1, 1, 0, 0;\n"
                 : QKV_WGMMA_SUMS_4
                 : "l"(a), "l"(b));
  }
};

template <>
struct NarrowWgmma<16> {
  static __device__ __forceinline__ void multiply(float (&d)[8], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" QKV_WGMMA_NAMES_8
                 "}, %8, %9, 1, 1, 1, 0, 0;\n"
                 : QKV_WGMMA_SUMS_8
                 : "l"(a), "l"(b));
  }
};

template <>
struct NarrowWgmma<32> {
  static __device__ __forceinline__ void multiply(float (&d)[16], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" QKV_WGMMA_NAMES_16
                 "}, %16, %17, 1, 1, 1, 0, 0;\n"
                 : QKV_WGMMA_SUMS_16
                 : "l"(a), "l"(b));
  }
};

template <>
struct NarrowWgmma<64> {
  static __device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" QKV_WGMMA_NAMES_32
                 "}, %32, %33, 1, 1, 1, 0, 0;\n"
                 : QKV_WGMMA_SUMS_32
                 : "l"(a), "l"(b));
  }
};

}  // namespace qkv::kernels::cuda

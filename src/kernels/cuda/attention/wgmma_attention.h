// wgmma m64nNk16 as attention needs it: bf16 operands, f32 sums in registers, the left operand from shared memory or from
// registers (an accumulator's layout, packed to bf16, is the layout of a left operand). kA, kB: 1 where the rows of the
// left operand, the columns of the right one lie together in memory, 0 where k does.
#pragma once

#include <cstdint>

#include "kernels/cuda/wgmma_lists.h"

namespace qkv::kernels::cuda {

// Packed pairs of a row of sums, as four lanes have them of 32 columns: v[k] has columns 8 k + 2 (lane % 4) and one more.
// They exchange them, so that each has the eight columns from 8 (lane % 4) on.
__device__ __forceinline__ void gather_columns(uint32_t (&v)[4]) {
  const auto exchange = [](uint32_t& low, uint32_t& high, unsigned with) {
    const bool upper = (threadIdx.x & with) != 0;
    const uint32_t got = __shfl_xor_sync(0xffffffffU, upper ? low : high, with);
    (upper ? low : high) = got;
  };
  exchange(v[0], v[1], 1);
  exchange(v[2], v[3], 1);
  exchange(v[0], v[2], 2);
  exchange(v[1], v[3], 2);
}

template <int kA = 0, int kB = 0>
__device__ __forceinline__ void multiply_shared(float (&d)[32], uint64_t a, uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{" QKV_WGMMA_NAMES_32 "}, %32, %33, p, 1, 1, %35, %36;\n}\n"
      : QKV_WGMMA_SUMS_32
      : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));
}

template <int kB>
__device__ __forceinline__ void multiply_registers(float (&d)[32], const uint32_t (&a)[4], uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{" QKV_WGMMA_NAMES_32 "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}\n"
      : QKV_WGMMA_SUMS_32
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kB));
}

template <int kB>
__device__ __forceinline__ void multiply_registers(float (&d)[64], const uint32_t (&a)[4], uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{" QKV_WGMMA_NAMES_64 "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70;\n}\n"
      : QKV_WGMMA_SUMS_64
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kB));
}

}  // namespace qkv::kernels::cuda

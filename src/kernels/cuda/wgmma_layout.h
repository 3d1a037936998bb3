// How the operands of wgmma lie in shared memory, where the copy engine puts them 128-byte swizzled, and its sums in
// registers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace qkv::kernels::cuda {

inline constexpr int kPanel = 64 * 128;  // bytes of 64 rows of 64 numbers

// A swizzled tile as wgmma reads it; byte distances between its parts.
__device__ inline uint64_t tile_descriptor(uint32_t address, uint32_t leading, uint32_t stride) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | uint64_t{1} << 62;
}

// Packed pairs of a row of sums, as four lanes have them of 32 columns: v[k] has columns 8 k + 2 (lane % 4) and one
// more. They exchange them, so that each has the eight columns from 8 (lane % 4) on.
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

}  // namespace qkv::kernels::cuda

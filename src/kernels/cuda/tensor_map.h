// What the copy engine needs to know of a tensor (tma.h).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace qkv::kernels::cuda {

// Boxes of bf16 in three axes, the first of them 64 numbers that lie together, 128-byte swizzled; strides in bytes, of the
// other two. What lies outside of the tensor arrives as zeros. False where the copy engine cannot take it.
inline bool make_tensor_map(CUtensorMap& map, const void* data, const cuuint64_t (&dims)[3],
                            const cuuint64_t (&strides)[2], const cuuint32_t (&box)[3]) {
  using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                   const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                   CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static const EncodeTiled encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return code == cudaSuccess ? reinterpret_cast<EncodeTiled>(found) : nullptr;
  }();
  constexpr cuuint32_t kSteps[3] = {1, 1, 1};
  return encode != nullptr &&
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(data), dims, strides, box, kSteps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace qkv::kernels::cuda

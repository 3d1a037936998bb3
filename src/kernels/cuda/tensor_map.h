// What the copy engine needs to know of a tensor (ptx.h).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

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

// Heads of [rows, heads, width], strides in numbers: boxes of 64 columns of one head by `box_rows` rows.
inline bool map_heads(CUtensorMap& map, const void* data, int64_t width, int64_t heads, int64_t rows,
                      int64_t head_stride, int64_t row_stride, int box_rows) {
  const auto size = [](int64_t n) { return static_cast<cuuint64_t>(n); };
  const cuuint64_t dims[3] = {size(width), size(heads), size(rows)},
                   strides[2] = {size(2 * head_stride), size(2 * row_stride)};
  const cuuint32_t box[3] = {64, 1, static_cast<cuuint32_t>(box_rows)};
  return make_tensor_map(map, data, dims, strides, box);
}

}  // namespace qkv::kernels::cuda

// Operands of products as the copy engine sees them.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "kernels/cuda/product.h"

namespace qkv::kernels::cuda {

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

inline EncodeTiled encode_tiled() {
  static const EncodeTiled function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return code == cudaSuccess ? reinterpret_cast<EncodeTiled>(found) : nullptr;
  }();
  return function;
}

// Boxes of 64 numbers that lie together by `box_rows`, of an operand with `rows` rows and `inner` numbers each, or of as
// many of them as there are groups; false where the copy engine cannot take it.
inline bool make_map(CUtensorMap& map, const Operand& o, int64_t rows, int64_t inner, int64_t groups, int box_rows) {
  const bool transposed = o.k != 1;
  const int64_t stride = transposed ? o.k : o.row;
  const cuuint64_t dims[3] = {static_cast<cuuint64_t>(transposed ? rows : inner),
                              static_cast<cuuint64_t>(transposed ? inner : rows), static_cast<cuuint64_t>(groups)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(stride) * sizeof(__nv_bfloat16),
                                 static_cast<cuuint64_t>(groups > 1 ? o.group : stride) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[3] = {64, static_cast<cuuint32_t>(transposed ? 64 : box_rows), 1}, steps[3] = {1, 1, 1};
  return encode_tiled() != nullptr &&
         encode_tiled()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<std::byte*>(o.data), dims, strides, box,
                        steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace qkv::kernels::cuda

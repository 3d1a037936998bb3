// Matrix products d[m, n] = sum_k a[m, k] b[n, k] with any strides, whole or in groups.
//
// One order per output, whatever the number of rows: for bf16 operands a chain of k16 steps in the tensor core with an
// f32 accumulator, K never split; for others one chain of fused multiply-adds, k ascending.
#pragma once

#include "kernels/cuda/access.h"

namespace qkv::kernels::cuda {

struct Operand {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t row = 0, k = 0, group = 0;  // element strides
};

struct ProductArgs {
  Operand a, b;
  int64_t m = 0, n = 0, k = 0;  // with groups: m or k is the most a group can have
  const int32_t* groups = nullptr;
  int64_t group_count = 1;
  enum class Grouped { none, rows, inner } grouped = Grouped::none;  // groups cut m, or k
  // out[m, n] = sum + bias, + residual; or added to what is there
  View out, bias, residual;
  int64_t out_group = 0;  // elements from one group's output to the next (Grouped::inner)
  bool add = false;
};

void product(const Exec& exec, const ProductArgs& args);  // in double if out is f64

// The same for many rows, with Hopper's copy engine and wgmma; false if it does not take these operands.
bool product_of_many_rows(const Exec& exec, const ProductArgs& args);

}  // namespace qkv::kernels::cuda

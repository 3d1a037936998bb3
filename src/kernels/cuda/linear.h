// What the parts of a linear layer's kernels share.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/product.h"

namespace qkv::kernels::cuda {

inline Operand operand(const Tensor& t, bool transposed) {
  const int last = t.rank() - 1;
  Operand o{.data = t.data(), .dtype = t.dtype(), .row = t.stride(last - 1), .k = 1};
  if (transposed) std::swap(o.row, o.k);
  if (t.rank() == 3) o.group = t.stride(0);
  return o;
}

inline void set_groups(ProductArgs& p, const Tensor& groups, ProductArgs::Grouped how) {
  if (!groups.defined()) return;
  p.groups = groups.as<int32_t>();
  p.group_count = groups.count() - 1;
  p.grouped = how;
}

void weight_gradient(const Exec& exec, const LinearBackwardArgs& a);
void bias_gradient(const Exec& exec, const LinearBackwardArgs& a);

}  // namespace qkv::kernels::cuda

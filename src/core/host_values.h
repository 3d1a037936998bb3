// Values of a tensor, copied to the host.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace qkv {

std::vector<float> host_floats(const Tensor& t);  // any float dtype and strides, row by row
std::vector<int32_t> host_ints(const Tensor& t);  // i32, contiguous

}  // namespace qkv

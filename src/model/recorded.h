// Tensors of a recording as numbers.
#pragma once

#include <vector>

#include "core/tensor.h"
#include "io/safetensors.h"

namespace qkv {

std::vector<float> recorded_floats(const StoredTensor& tensor);
std::vector<int32_t> recorded_ids(const StoredTensor& tensor);  // I64 or I32; an Error for what no id can be

// A plain float tensor of a device, row by row.
std::vector<float> host_floats(const Tensor& t);

struct Distance {
  double nmse = 0, worst = 0;  // worst difference in standard deviations of what is right
};
Distance distance(std::span<const float> got, std::span<const float> right);

}  // namespace qkv

// Small arrays that never change, on a device: uploaded once and found again by what they hold. A recorded pass uploads
// nothing, so what its ops need beside its inputs lies here.
#pragma once

#include <map>
#include <string>

#include "core/tensor.h"

namespace qkv {

class Constants {
 public:
  explicit Constants(Device& device) : device_(&device) {}
  Tensor get(const void* host, DType dtype, const Shape& shape);

 private:
  Device* device_;
  std::map<std::string, Storage> all_;  // by their bytes
};

}  // namespace qkv

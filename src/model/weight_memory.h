// What the weights of a model take on the device of its passes.
#pragma once

#include "model/model.h"

namespace qkv {

struct WeightMemory {
  int64_t kept = 0;    // bytes that passes read
  int64_t before = 0;  // of the largest master that is there until it is converted
  int64_t held = 0;    // of `kept`, there already: from an earlier run, or the training it belongs to
};
WeightMemory weight_memory(const Model& model, const Kernels& kernels, Precision precision);

}  // namespace qkv

// A model with initial weights, in memory of any device.
#pragma once

#include <memory>
#include <vector>

#include "model/families/family.h"
#include "model/initialise.h"
#include "model/model.h"
#include "model/weight_list.h"
#include "support/pass.h"

namespace qkv::test {

inline void set_numbers(const Param& weight, const std::vector<float>& numbers) {
  to_device(weight.master(), Numbers(numbers.begin(), numbers.end()));
}

inline std::unique_ptr<Model> fresh_model(const Json& config, Device& device) {
  ModelSpec spec = read_spec(Config(config, "test"));
  Weights weights;
  for (const WeightSpec& weight : weight_list(spec)) {
    std::vector<float> numbers(static_cast<size_t>(weight.shape.count()));
    initial_numbers(weight, 1, 0, numbers);
    set_numbers(weights.add(Param(weight.name, device, DType::f32, weight.shape)), numbers);
  }
  return Model::make(std::move(spec), std::move(weights));
}

}  // namespace qkv::test

// Layer norm or RMS norm with its weights.
#pragma once

#include "nn/spec.h"
#include "nn/weights.h"
#include "ops/ops.h"

namespace qkv {

class Norm {
 public:
  Norm(const NormSpec& spec, const Weights& weights, const std::string& name)
      : spec_(spec), weight_(&weights.at(name)), bias_(weights.find(name + ".bias")) {}

  Tensor forward(Context& cx, const Tensor& x) const { return forward(cx, x, cx.precision.compute); }
  Tensor forward(Context& cx, const Tensor& x, DType dtype) const {
    return spec_.kind == NormSpec::Kind::layer
               ? ops::layer_norm(
                     cx, x,
                     {.weight = weight_, .bias = bias_, .eps = spec_.eps, .offset = spec_.offset, .dtype = dtype})
               : ops::rms_norm(cx, x, {.weight = weight_, .eps = spec_.eps, .offset = spec_.offset, .dtype = dtype});
  }

 private:
  NormSpec spec_;
  const Param *weight_, *bias_;
};

}  // namespace qkv

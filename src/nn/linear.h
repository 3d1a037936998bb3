// A linear layer: a weight and its bias, if it has one.
#pragma once

#include "nn/weights.h"
#include "ops/ops.h"

namespace qkv {

// Products take their operand in the pass' compute dtype; the residual stream may be wider.
inline Tensor as_operand(Context& cx, const Tensor& x) {
  if (x.dtype() == cx.precision.compute) return x;
  const Tensor made = cx.tape != nullptr ? cx.tape->operand(x) : Tensor();
  return made.defined() ? made : ops::cast(cx, x, cx.precision.compute);
}

class Linear {
 public:
  Linear(const Weights& weights, const std::string& name)
      : weight_(&weights.at(name)), bias_(weights.find(name + ".bias")) {}

  Tensor forward(Context& cx, const Tensor& x) const {  // [..., K] -> [..., O]
    return ops::linear(cx, as_operand(cx, x), *weight_, {.bias = bias_});
  }
  Tensor forward(Context& cx, const Tensor& x, const ops::RowGroups& groups) const {  // one weight per group of rows
    return ops::linear(cx, as_operand(cx, x), *weight_, {.bias = bias_, .groups = groups});
  }
  // For products that are added to the residual stream: not rounded before the sum. With a residual, the sum.
  Tensor forward_to_stream(Context& cx, const Tensor& x, const ops::Residual& residual) const {
    return ops::linear(cx, as_operand(cx, x), *weight_,
                       {.bias = bias_, .out = cx.precision.exact, .residual = residual});
  }
  Tensor forward_to_stream(Context& cx, const Tensor& x, const ops::RowGroups& groups) const {
    return ops::linear(cx, as_operand(cx, x), *weight_, {.bias = bias_, .groups = groups, .out = cx.precision.exact});
  }
  Tensor forward_exact(Context& cx, const Tensor& x) const {  // routers: a rounded logit might choose another expert
    const DType exact = cx.precision.exact;
    return ops::linear(cx, x.dtype() == exact ? x : ops::cast(cx, x, exact), *weight_, {.bias = bias_, .dtype = exact});
  }

  ops::Affine affine() const { return {weight_, bias_}; }

 private:
  const Param *weight_, *bias_;
};

}  // namespace qkv

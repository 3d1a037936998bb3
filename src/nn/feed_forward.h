// The feed-forward of a layer: dense, or a mixture of experts.
#pragma once

#include <memory>
#include <optional>

#include "nn/linear.h"
#include "nn/spec.h"

namespace qkv {

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  // [N, C] -> [N, C], added to the residual where there is one.
  virtual Tensor forward(Context& cx, const Tensor& x, const Rows& rows, const ops::Residual& residual) const = 0;

  static std::unique_ptr<FeedForward> make(const FeedForwardSpec& spec, Place place, const Weights& weights,
                                           const std::string& name);
};

}  // namespace qkv

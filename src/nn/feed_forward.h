// The feed-forward of a layer: dense, or a mixture of experts.
#pragma once

#include <memory>
#include <optional>

#include "nn/linear.h"

namespace qkv {

struct ExpertsSpec {
  int64_t count = 0, width = 0;
  RouteRule rule;
  int64_t shared_width = 0;  // of the expert every token visits; 0: none
  bool router_bias = false;
  bool correction = false;  // a bias on the scores, for the choice only
  bool bias = false;
};

struct FeedForwardSpec {
  int64_t width = 0;   // of the dense form
  bool gated = false;  // act(gate x) * (up x), else act(up x)
  Activation act;
  float gate_limit = 0, gate_shift = 0;  // see Gating
  bool bias = false;
  std::optional<ExpertsSpec> experts;
  float dropout = 0;  // after the activation

  Gating gating() const { return {.act = act, .limit = gate_limit, .shift = gate_shift}; }
};

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  // [N, C] -> [N, C], added to the residual where there is one.
  virtual Tensor forward(Context& cx, const Tensor& x, const Rows& rows, const ops::Residual& residual) const = 0;

  static std::unique_ptr<FeedForward> make(const FeedForwardSpec& spec, Place place, const Weights& weights,
                                           const std::string& name);
};

}  // namespace qkv

// Parameters of formulas that both kernels and descriptions of models use.
#pragma once

#include <cstdint>

namespace qkv {

struct Activation {
  enum class Kind : uint8_t { identity, relu, gelu_erf, gelu_tanh, silu, tanh, relu_squared } kind = Kind::identity;
  float alpha = 1;  // silu: x sigmoid(alpha x), 1.702 is "quick gelu"; tanh: alpha tanh(x / alpha), a soft cap
};
struct Gating {  // y = act(min(gate, limit)) * (clamp(up, -limit, limit) + shift)
  Activation act;
  float limit = 0;  // 0: no clamp
  float shift = 0;
};

struct RouteRule {
  int64_t top_k = 1;
  bool sigmoid = false;      // scores = sigmoid(logits), else softmax(logits)
  bool renormalise = false;  // weights of the chosen sum to 1
  double scaling = 1;        // weights times this, at the end
  int64_t groups = 1;        // experts in equal groups; only the best `top_groups` by the sum of their two best compete
  int64_t top_groups = 1;
};

}  // namespace qkv

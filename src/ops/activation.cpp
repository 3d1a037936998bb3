// src/ops/activation.cpp
//
//   activation   y = f(x)                  dx = dy f'(x)
//   gated        y = f(g') (u' + shift)    g' = min(gate, limit), u' = clamp(up, -limit, limit)
//                dgate = dy f'(g') (u' + shift) where gate <= limit,   dup = dy f(g') where |up| <= limit
//   relu max(x, 0)    relu_squared max(x, 0)^2    gelu_erf x Phi(x)    gelu_tanh x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//   silu x sigmoid(alpha x)    tanh alpha tanh(x / alpha)
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

Tensor activation(Context& cx, const Tensor& x, Activation act) {
  check_vectors(cx, "activation", "x", x);
  check_number("activation", "alpha", static_cast<double>(act.alpha), 1e-30, 1e30);
  const Tensor y = cx.make(x.shape(), x.dtype());
  cx.kernels.activation(cx.exec, {.y = y, .x = x, .act = act});
  if (cx.tape != nullptr) {
    cx.tape->record("activation", [=](Backward& bk) {
      bk.kernels.activation_backward(bk.exec, {.dx = bk.grad(x), .dy = bk.dy(y), .x = x, .act = act});
    });
  }
  return cx.finish("activation", y);
}

Tensor gated(Context& cx, const Tensor& gate, const Tensor& up, Gating form) {
  check_vectors(cx, "gated", "gate", gate);
  check_vectors(cx, "gated", "up", up);
  check_same_shape("gated", "gate", gate, "up", up);
  check_number("gated", "limit", static_cast<double>(form.limit), 0, 1e30);
  check_number("gated", "shift", static_cast<double>(form.shift), -1e30, 1e30);
  check_number("gated", "alpha", static_cast<double>(form.act.alpha), 1e-30, 1e30);
  const Tensor y = cx.make(gate.shape(), gate.dtype());
  cx.kernels.gated(cx.exec, {.y = y, .gate = gate, .up = up, .form = form});
  if (cx.tape != nullptr) {
    cx.tape->record("gated", [=](Backward& bk) {
      bk.kernels.gated_backward(
          bk.exec, {.dgate = bk.grad(gate), .dup = bk.grad(up), .dy = bk.dy(y), .gate = gate, .up = up, .form = form});
    });
  }
  return cx.finish("gated", y);
}

}  // namespace qkv::ops

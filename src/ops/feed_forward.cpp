// src/ops/feed_forward.cpp
//
//   u = x w_up^T + b_up     g = x w_gate^T + b_gate          x [..., K], u, g, h [..., F]
//   h = f(u), or gated(g, u) where there is a gate           see activation.cpp
//   y = h w_down^T + b_down, or residual + that (dropped)              y [..., O]
//
//   dh = dy w_down,   du = dh f'(u), or du and dg as gated has them,   dx = du w_up + dg w_gate
//   weights and biases as in linear,   dresidual = dy
//
// Fused: h is computed inside the product with w_up, du and dg inside the backward product with w_down. u, h and dh are
// rounded as if they were stored, so the bits are those of linear, activation or gated, and linear.
#include "ops/checks.h"
#include "ops/product.h"

namespace qkv::ops {
namespace {

constexpr const char* kFeedForward = "feed_forward";

void check_form(const Gating& form) {
  check_number(kFeedForward, "limit", static_cast<double>(form.limit), 0, 1e30);
  check_number(kFeedForward, "shift", static_cast<double>(form.shift), -1e30, 1e30);
  check_number(kFeedForward, "alpha", static_cast<double>(form.act.alpha), 1e-30, 1e30);
}

}  // namespace

Tensor feed_forward(Context& cx, const Tensor& x, const FeedForwardOptions& options) {
  check_vectors(cx, kFeedForward, "x", x);
  const DType dtype = cx.precision.compute;
  QKV_CHECK(x.rank() >= 2 && x.dtype() == dtype, kFeedForward, ": x is ", x, " but must be ", dtype, " [..., ",
            x.cols(), "]", Hint("cast it to the pass' compute dtype; view one row as [1, K]"));
  const DType out = options.out.value_or(dtype);
  QKV_CHECK(is_float(out), kFeedForward, ": x is ", x, " and cannot give an output of ", out,
            Hint("ask for f32 or bf16"));
  QKV_CHECK(options.up.weight != nullptr && options.down.weight != nullptr, kFeedForward, ": x is ", x,
            " but the weight ", options.up.weight == nullptr ? "up" : "down", " is missing",
            Hint("only the gate may be absent"));
  check_form(options.form);

  const bool gated = options.gate.weight != nullptr;
  const Product up(cx, kFeedForward, x, {options.up, options.groups, dtype});
  const Product gating = gated ? Product(cx, kFeedForward, x, {options.gate, options.groups, dtype}) : up;
  QKV_CHECK(gating.outputs() == up.outputs(), kFeedForward, ": the weight '", options.gate.weight->name(), "' is ",
            options.gate.weight->shape(), " but '", options.up.weight->name(), "' is ", options.up.weight->shape(),
            Hint("gate and up give rows of one width"));
  const Shape hidden = x.shape().with(-1, up.outputs());
  const Tensor h = cx.constant(hidden, dtype);
  const Product down(cx, kFeedForward, h, {options.down, options.groups, dtype});
  const Shape shape = x.shape().with(-1, down.outputs());
  const Residual residual = options.residual;
  if (residual.x.defined() || residual.in_place) check_residual(cx, kFeedForward, residual, shape);

  const Tensor g = gated ? cx.constant(hidden, dtype) : Tensor();
  // Only backward reads u, and the slope of relu can be told from h as well.
  const bool told_by_h = !gated && options.form.act.kind == Activation::Kind::relu;
  const Tensor u = cx.tape != nullptr && !told_by_h ? cx.constant(hidden, dtype) : Tensor();
  const Tensor y = residual.in_place ? residual.x : cx.make(shape, residual.x.defined() ? residual.x.dtype() : out);
  const LinearArgs to_h = up.arguments(h, x, {.form = options.form, .gate = g, .pre = u});
  if (gated) {
    forward_set(cx, {{gating.arguments(g, x, {}), to_h}});
  } else {
    cx.kernels.linear(cx.exec, to_h);
  }
  const Tensor kept = kept_of(cx, residual, y);
  down.forward(cx, y, h, {.residual = residual.x, .dropout = residual.dropout, .kept = kept});

  if (cx.tape != nullptr) {
    cx.tape->record(kFeedForward, [=, form = options.form](Backward& bk) {
      const Tensor dy = bk.dy(y, dtype, residual.dropout);
      bk.pass_on(y, residual.x);
      const Tensor du = bk.make(hidden, dtype), dg = gated ? bk.make(hidden, dtype) : Tensor();
      down.backward(bk, dy, h, {.form = form, .pre = told_by_h ? h : u, .gate = g, .dpre = {du}, .dgate = {dg}});
      up.backward(bk, du, x, bk.grad(x));
      if (gated) gating.backward(bk, dg, x, bk.grad(x));
    });
    cx.tape->reads_rounded(y, dtype, {residual.dropout, kept});
  }
  return cx.finish(kFeedForward, y);
}

}  // namespace qkv::ops

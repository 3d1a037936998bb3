// src/ops/layer_norm.cpp
//
//   xhat = (x - mean) * s,   s = 1 / sqrt(var + eps)       mean and variance over the last axis
//   y  = xhat * u + b,   u = w + offset
//   dx = s * (g - mean(g) - xhat * mean(g * xhat)),   g = dy * u
//   dw = sum over rows of dy * xhat,   db = sum over rows of dy
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

Tensor layer_norm(Context& cx, const Tensor& x, const NormOptions& options) {
  check_vectors(cx, "layer_norm", "x", x);
  QKV_CHECK(x.cols() > 0, "layer_norm: x is ", x, " but the mean over an empty axis does not exist",
            Hint("the last axis must have at least one column"));
  check_number("layer_norm", "eps", options.eps, 0, 1);
  const Param *w = options.weight, *b = options.bias;
  check_number("layer_norm", "offset", options.offset, 0, 1);
  for (const Param* p : {w, b}) {
    if (p != nullptr) check_weight(cx, "layer_norm", *p, {x.cols()}, x);
  }

  const DType exact = cx.precision.exact;
  const Tensor y = cx.make(x.shape(), options.dtype.value_or(cx.precision.compute));
  // A stream that is normed is both added to and multiplied.
  const bool twice = cx.kernels.rounds_norms && cx.tape != nullptr && cx.probe == nullptr && !cx.guard_finite &&
                     y.dtype() == exact && exact != cx.precision.compute;
  const Tensor operand = twice ? cx.make(x.shape(), cx.precision.compute) : Tensor();
  const Tensor mean = cx.make({x.rows()}, exact), rstd = cx.make({x.rows()}, exact);  // kept for backward
  const Tensor weight = w != nullptr ? w->value(cx, exact) : Tensor();
  cx.kernels.layer_norm(cx.exec, {.y = y,
                                  .mean = mean,
                                  .rstd = rstd,
                                  .x = x,
                                  .w = weight,
                                  .b = b != nullptr ? b->value(cx, exact) : Tensor(),
                                  .eps = options.eps,
                                  .offset = options.offset,
                                  .rounded = operand});
  if (cx.tape != nullptr) {
    cx.tape->record("layer_norm", [=, offset = options.offset](Backward& bk) {
      const Grad dx = bk.grad(x);
      const Backward::Dropped dropped = bk.dropped(x);
      bk.kernels.layer_norm_backward(bk.exec, {.dx = dx,
                                               .dw = w != nullptr ? bk.grad(*w) : Grad{},
                                               .db = b != nullptr ? bk.grad(*b) : Grad{},
                                               .dy = bk.dy(y),
                                               .x = x,
                                               .w = weight,
                                               .mean = mean,
                                               .rstd = rstd,
                                               .offset = offset,
                                               .also = bk.dy_if_any(operand),
                                               .rounded = bk.rounded(x),
                                               .dropout = dropped.dropout,
                                               .kept = dropped.kept});
    });
    if (twice) cx.tape->set_operand(y, operand);
  }
  return cx.finish("layer_norm", y);
}

}  // namespace qkv::ops

// src/ops/rms_norm.cpp
//
//   y  = x * r * u,   r = 1 / sqrt(mean(x^2) + eps),   u = w + offset       mean over the last axis
//   dx = r * (g - x * r^2 * mean(g * x)),   g = dy * u
//   dw = sum over rows of dy * x * r
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

Tensor rms_norm(Context& cx, const Tensor& x, const NormOptions& options) {
  check_vectors(cx, "rms_norm", "x", x);
  QKV_CHECK(x.cols() > 0, "rms_norm: x is ", x, " but the mean over an empty axis does not exist",
            Hint("the last axis must have at least one column"));
  check_number("rms_norm", "eps", options.eps, 0, 1);
  check_number("rms_norm", "offset", options.offset, 0, 1);
  QKV_CHECK(options.bias == nullptr, "rms_norm: a bias was given for x ", x, " but only layer_norm has one",
            Hint("leave it out"));
  const Param* w = options.weight;
  if (w != nullptr) check_weight(cx, "rms_norm", *w, {x.cols()}, x);

  const DType exact = cx.precision.exact;
  const Tensor y = cx.make(x.shape(), options.dtype.value_or(cx.precision.compute));
  const Tensor r = cx.make({x.rows()}, exact);  // 1 / rms of each row, kept for backward
  const Tensor weight = w != nullptr ? w->value(cx, exact) : Tensor();
  cx.kernels.rms_norm(cx.exec, {.y = y, .r = r, .x = x, .w = weight, .eps = options.eps, .offset = options.offset});
  if (cx.tape != nullptr) {
    cx.tape->record("rms_norm", [=, offset = options.offset](Backward& bk) {
      const Grad dx = bk.grad(x);
      const Backward::Dropped dropped = bk.dropped(x);
      bk.kernels.rms_norm_backward(bk.exec, {.dx = dx,
                                             .dw = w != nullptr ? bk.grad(*w) : Grad{},
                                             .dy = bk.dy(y),
                                             .x = x,
                                             .w = weight,
                                             .r = r,
                                             .offset = offset,
                                             .rounded = bk.rounded(x),
                                             .dropout = dropped.dropout,
                                             .kept = dropped.kept});
    });
  }
  return cx.finish("rms_norm", y);
}

}  // namespace qkv::ops

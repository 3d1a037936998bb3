// src/ops/softmax.cpp
//
//   y = exp(x - max) / sum exp(x - max)      over the last axis; a row of only -inf gives zeros
//   dx = y (dy - sum(dy y))
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

Tensor softmax(Context& cx, const Tensor& x) {
  check_vectors(cx, "softmax", "x", x);
  const Tensor y = cx.make(x.shape(), x.dtype());
  cx.kernels.softmax(cx.exec, {.y = y, .x = x});
  if (cx.tape != nullptr) {
    cx.tape->record("softmax", [=](Backward& bk) {
      bk.kernels.softmax_backward(bk.exec, {.dx = bk.grad(x), .dy = bk.dy(y), .y = y});
    });
  }
  return cx.finish("softmax", y);
}

}  // namespace qkv::ops

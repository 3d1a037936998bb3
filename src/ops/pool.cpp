// src/ops/pool.cpp
//
//   y[n] = first, last or mean row of segment n; 0 if it is empty
//   dx of these rows = dy[n], for the mean divided by their number
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

Tensor pool(Context& cx, const Tensor& x, const Rows& rows, Pooling kind) {
  check_vectors(cx, "pool", "x", x);
  QKV_CHECK(x.rows() == rows.rows, "pool: x is ", x, " with ", x.rows(), " rows but the segments are of ", rows.rows,
            Hint("give the Rows the pass was made with"));
  const Tensor y = cx.make({rows.segments.dim(0), x.cols()}, x.dtype());
  cx.kernels.pool(cx.exec, {.kind = kind, .y = y, .x = x, .segments = rows.segments});
  if (cx.tape != nullptr) {
    cx.tape->record("pool", [=, segments = rows.segments](Backward& bk) {
      bk.kernels.pool_backward(bk.exec, {.kind = kind, .dx = bk.grad(x), .dy = bk.dy(y), .segments = segments});
    });
  }
  return cx.finish("pool", y);
}

}  // namespace qkv::ops

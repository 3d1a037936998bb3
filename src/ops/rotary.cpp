// src/ops/rotary.cpp
//
// Pair i of a head's columns, (x1, x2), is rotated by the angle of the row's position:
//   y1 = x1 cos - x2 sin      dx1 =  dy1 cos + dy2 sin
//   y2 = x2 cos + x1 sin      dx2 = -dy1 sin + dy2 cos
// Pairs are (i, i + R), or (2i, 2i + 1) if interleaved, within columns [first, first + 2 R).
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

Tensor rotary(Context& cx, const Tensor& x, const Tensor& positions, const RotaryOptions& options) {
  check_vectors(cx, "rotary", "x", x);
  QKV_CHECK(x.rank() >= 3, "rotary: x is ", x, " but must be [..., H, D]", Hint("split_heads comes first"));
  check_vectors(cx, "rotary", "cos", options.cos);
  check_vectors(cx, "rotary", "sin", options.sin);
  check_same_shape("rotary", "cos", options.cos, "sin", options.sin);
  QKV_CHECK(options.cos.rank() == 2 && options.first >= 0 && options.first <= x.cols() - 2 * options.cos.cols(),
            "rotary: x is ", x, " but the table ", options.cos, " turns ", 2 * options.cos.cols(), " columns from ",
            options.first, " on", Hint("the rotary width must fit into the head width"));
  const Tensor rows = x.flatten_to(3);
  check_indices(cx, "rotary", "positions", positions);
  check_shape("rotary", "positions", positions, {rows.dim(0)});
  check_index_range(cx, "rotary", "positions", positions, options.cos.dim(0));

  const Tensor y = cx.make(x.shape(), x.dtype());
  const auto turn = [=](const Tensor& to, const Tensor& from, bool inverse, bool add) {
    return RotaryArgs{.y = to.flatten_to(3),
                      .x = from.flatten_to(3),
                      .cos = options.cos,
                      .sin = options.sin,
                      .positions = positions,
                      .first = options.first,
                      .interleaved = options.interleaved,
                      .inverse = inverse,
                      .add = add};
  };
  cx.kernels.rotary(cx.exec, turn(y, x, false, false));
  if (cx.tape != nullptr) {
    cx.tape->record("rotary", [=](Backward& bk) {
      if (const Grad dx = bk.grad(x)) bk.kernels.rotary(bk.exec, turn(dx.tensor, bk.dy(y), true, dx.add));
    });
  }
  return cx.finish("rotary", y);
}

}  // namespace qkv::ops

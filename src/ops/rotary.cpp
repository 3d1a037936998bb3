// src/ops/rotary.cpp
//
// Pair i of a head's columns, (x1, x2), is rotated by the angle of the row's position:
//   y1 = x1 cos - x2 sin      dx1 =  dy1 cos + dy2 sin
//   y2 = x2 cos + x1 sin      dx2 = -dy1 sin + dy2 cos
// Pairs are (i, i + R), or (2i, 2i + 1) if interleaved, within columns [first, first + 2 R).
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {
namespace {

RotaryArgs turn(const Tensor& y, const Tensor& x, const Tensor& positions, const RotaryOptions& options) {
  return {.y = y.flatten_to(3),
          .x = x.flatten_to(3),
          .cos = options.cos,
          .sin = options.sin,
          .positions = positions,
          .first = options.first,
          .interleaved = options.interleaved};
}

}  // namespace

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
  cx.kernels.rotary(cx.exec, turn(y, x, positions, options));
  if (cx.tape != nullptr) {
    cx.tape->record("rotary", [=](Backward& bk) {
      const Grad dx = bk.grad(x);
      if (!dx) return;
      RotaryArgs back = turn(dx.tensor, bk.dy(y), positions, options);
      back.inverse = true;
      back.add = dx.add;
      bk.kernels.rotary(bk.exec, back);
    });
  }
  return cx.finish("rotary", y);
}

Tensor cache_heads(Context& cx, const CacheHeads& h, const Tensor& positions, const RotaryOptions& options) {
  // At once where the ops themselves would check nothing on the device, and shapes are plain.
  const auto fits = [&](const Tensor& cache, const Tensor& x) {
    return cache.rank() == 3 && x.rank() == 3 && cache.shape().with(0, x.dim(0)) == x.shape() &&
           h.slots.count() == x.dim(0) && positions.count() == x.dim(0);
  };
  const bool turns = h.q.rank() == 3 && h.q.dim(0) == h.k.dim(0) && h.q.cols() == h.k.cols() && options.first >= 0 &&
                     options.first + 2 * options.cos.cols() <= h.q.cols();
  if (cx.kernels.cache_heads == nullptr || !cx.recordable || cx.tape != nullptr || cx.guard_finite || !turns ||
      !fits(h.cache_k, h.k) || !fits(h.cache_v, h.v)) {
    scatter_rows(cx, h.cache_k, rotary(cx, h.k, positions, options), h.slots, h.k_scales);
    scatter_rows(cx, h.cache_v, h.v, h.slots, h.v_scales);
    return rotary(cx, h.q, positions, options);
  }
  const Tensor q = cx.make(h.q.shape(), h.q.dtype()), k = cx.make(h.k.shape(), h.k.dtype());
  cx.kernels.cache_heads(cx.exec, {.q = turn(q, h.q, positions, options),
                                   .k = turn(k, h.k, positions, options),
                                   .to_k = {.y = h.cache_k, .x = k, .slots = h.slots, .scales = h.k_scales},
                                   .to_v = {.y = h.cache_v, .x = h.v, .slots = h.slots, .scales = h.v_scales}});
  return q;
}

}  // namespace qkv::ops

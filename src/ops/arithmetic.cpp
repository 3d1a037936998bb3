// add      y = a + b           da = dy, db = dy
// scale    y = f x             dx = f dy
// cast     y = x in a dtype    dx = dy
// concat   y = [a | b]         da, db = their columns of dy; one b for all heads gets the sum over heads
// split_heads, merge_heads: views, so their gradients are views too
#include "ops/checks.h"
#include "ops/dropout.h"
#include "ops/product.h"

namespace qkv::ops {
namespace {

Tensor scaled_copy(Context& cx, const char* op, const Tensor& x, DType dtype, double factor) {
  const Tensor y = cx.make(x.shape(), dtype);
  cx.kernels.copy(cx.exec, {.y = y, .x = x, .factor = factor});
  if (cx.tape != nullptr) {
    cx.tape->record(op, [=](Backward& bk) {
      if (const Grad dx = bk.grad(x)) {
        bk.kernels.copy(bk.exec, {.y = dx.tensor, .x = bk.dy(y), .factor = factor, .add = dx.add});
      }
    });
  }
  return cx.finish(op, y);
}

}  // namespace

Tensor add(Context& cx, const Tensor& a, const Tensor& b) {
  check_vectors(cx, "add", "a", a);
  check_vectors(cx, "add", "b", b);
  check_same_shape("add", "a", a, "b", b);
  const Tensor y = cx.make(a.shape(), a.dtype());
  cx.kernels.add(cx.exec, {.y = y, .a = a, .b = b});
  if (cx.tape != nullptr) {
    cx.tape->record("add", [=](Backward& bk) {
      bk.pass_on(y, a);
      bk.pass_on(y, b);
    });
  }
  return cx.finish("add", y);
}

Tensor add_residual(Context& cx, const Residual& residual, const Tensor& b) {
  if (!residual.x.defined()) return b;
  if (residual.dropout.p > 0) return drop(cx, b, residual);
  if (!residual.in_place) return add(cx, residual.x, b);
  check_residual(cx, "add", residual, b.shape());
  check_vectors(cx, "add", "b", b);
  cx.kernels.add(cx.exec, {.y = residual.x, .a = residual.x, .b = b});
  return cx.finish("add", residual.x);
}

Tensor scale(Context& cx, const Tensor& x, double factor) {
  check_vectors(cx, "scale", "x", x);
  check_number("scale", "factor", factor, -1e30, 1e30);
  return scaled_copy(cx, "scale", x, x.dtype(), factor);
}

Tensor cast(Context& cx, const Tensor& x, DType dtype) {
  check_floats(cx, "cast", "x", x);
  QKV_CHECK(is_float(dtype), "cast: cannot turn ", x, " into ", dtype,
            Hint("cast works between f64, f32, bf16 and f16"));
  return scaled_copy(cx, "cast", x, dtype, 1);
}

Tensor concat(Context& cx, const Tensor& a, const Tensor& b) {
  check_vectors(cx, "concat", "a", a);
  check_vectors(cx, "concat", "b", b);
  QKV_CHECK(a.rank() == 3 && b.rank() == 3 && a.dim(0) == b.dim(0) && (b.dim(1) == a.dim(1) || b.dim(1) == 1) &&
                a.dtype() == b.dtype(),
            "concat: a is ", a, " but b is ", b,
            Hint("b must be [N, H, B], or [N, 1, B] for one part shared by all heads"));
  const int64_t heads = a.dim(1), left = a.dim(2), right = b.dim(2);
  const bool shared = b.dim(1) == 1 && heads != 1;
  const Tensor y = cx.make({a.dim(0), heads, left + right}, a.dtype());
  cx.kernels.copy(cx.exec, {.y = y.slice(2, 0, left), .x = a});
  cx.kernels.copy(cx.exec, {.y = y.slice(2, left, right), .x = shared ? b.expanded(1, heads) : b});
  if (cx.tape != nullptr) {
    cx.tape->record("concat", [=](Backward& bk) {
      const Tensor dy = bk.dy(y);
      if (const Grad da = bk.grad(a)) {
        bk.kernels.copy(bk.exec, {.y = da.tensor, .x = dy.slice(2, 0, left), .add = da.add});
      }
      const Grad db = bk.grad(b);
      if (!db) return;
      const Tensor part = dy.slice(2, left, right);
      if (!shared) return bk.kernels.copy(bk.exec, {.y = db.tensor, .x = part, .add = db.add});
      for (int64_t h = 0; h < heads; ++h) {
        bk.kernels.copy(bk.exec, {.y = db.tensor, .x = part.slice(1, h, 1), .add = db.add || h > 0});
      }
    });
  }
  return cx.finish("concat", y);
}

Tensor split_heads(const Tensor& x, int64_t heads) {
  QKV_CHECK(x.rank() >= 1 && heads > 0 && x.cols() % heads == 0, "split_heads: ", x, " does not divide into ", heads,
            " heads", Hint("the width must be a multiple of the number of heads"));
  return x.split_last(heads, x.cols() / heads);
}

Tensor merge_heads(const Tensor& x) {
  QKV_CHECK(x.rank() >= 2 && (x.stride(-2) == x.dim(-1) * x.stride(-1) || x.dim(-2) <= 1), "merge_heads: the heads of ",
            x, " do not lie one after the other", Hint("x must be [..., H, D]; ops::cast makes a contiguous copy"));
  return x.merge_last();
}

}  // namespace qkv::ops

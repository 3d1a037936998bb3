// src/ops/dropout.cpp
//
//   y = residual + x keep / (1 - p),   keep = 0 with probability p      dx = dy keep / (1 - p)     dresidual = dy
//
// The mask is a function of seed, step, layer, site, global row and column: the same in forward, backward and
// recomputation, and for any layout of the batch.
#include "ops/dropout.h"

#include "base/philox.h"
#include "ops/checks.h"
#include "ops/product.h"

namespace qkv::ops {

Dropout dropout_of(const Context& cx, const DropoutOptions& options) {
  check_number("dropout", "p", static_cast<double>(options.p), 0, 0.999);
  if (!cx.training) return {};
  const RngKey key{
      .seed = cx.rng.seed,
      .step = cx.rng.step,
      .layer = static_cast<uint32_t>(options.place.stack) << 16 | static_cast<uint16_t>(options.place.layer),
      .site = static_cast<uint32_t>(options.site)};
  return {.p = options.p, .key = fold(key), .first_row = cx.rng.first_row};
}

Tensor dropout(Context& cx, const Tensor& x, const DropoutOptions& options) {
  check_vectors(cx, "dropout", "x", x);
  const Dropout dropout = dropout_of(cx, options);
  return dropout.p == 0 ? x : drop(cx, x, {.dropout = dropout});
}

Tensor drop(Context& cx, const Tensor& x, const Residual& residual) {
  check_vectors(cx, "dropout", "x", x);
  const bool joined = residual.x.defined();
  const Dropout dropout = residual.dropout;
  if (joined) check_residual(cx, "dropout", residual, x.shape());
  const Tensor y = residual.in_place ? residual.x : cx.make(x.shape(), joined ? residual.x.dtype() : x.dtype());
  cx.kernels.dropout(cx.exec, {.y = y, .x = x, .residual = residual.x, .dropout = dropout});
  if (cx.tape != nullptr) {
    cx.tape->record("dropout", [=](Backward& bk) {
      const Tensor dy = bk.dy(y);
      if (const Tensor rounded = bk.only_rounded(x); rounded.defined()) {
        bk.kernels.dropout(bk.exec, {.y = rounded, .x = dy, .dropout = dropout});
      } else if (const Grad dx = bk.grad(x)) {
        bk.kernels.dropout(bk.exec,
                           {.y = dx.tensor, .x = dy, .residual = dx.add ? dx.tensor : Tensor(), .dropout = dropout});
      }
      if (joined) bk.pass_on(y, residual.x);
    });
  }
  return cx.finish("dropout", y);
}

}  // namespace qkv::ops

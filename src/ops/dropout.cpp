// src/ops/dropout.cpp
//
//   y = x keep / (1 - p),   keep = 0 with probability p      dx = dy keep / (1 - p)
//
// The mask is a function of seed, step, layer, site, global row and column: the same in forward, backward and
// recomputation, and for any layout of the batch.
#include "ops/dropout.h"

#include "base/philox.h"
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

Dropout dropout_of(const Context& cx, float p, Place place, Site site) {
  const RngKey key{.seed = cx.rng.seed,
                   .step = cx.rng.step,
                   .layer = static_cast<uint32_t>(place.stack) << 16 | static_cast<uint16_t>(place.layer),
                   .site = static_cast<uint32_t>(site)};
  return {.p = p, .key = fold(key), .first_row = cx.rng.first_row};
}

Tensor dropout(Context& cx, const Tensor& x, const DropoutOptions& options) {
  check_vectors(cx, "dropout", "x", x);
  check_number("dropout", "p", static_cast<double>(options.p), 0, 0.999);
  if (!cx.training || options.p == 0) return x;
  const Dropout dropout = dropout_of(cx, options.p, options.place, options.site);
  const Tensor y = cx.make(x.shape(), x.dtype());
  cx.kernels.dropout(cx.exec, {.y = y, .x = x, .dropout = dropout});
  if (cx.tape != nullptr) {
    cx.tape->record("dropout", [=](Backward& bk) {
      if (const Grad dx = bk.grad(x)) {
        bk.kernels.dropout(bk.exec, {.y = dx.tensor, .x = bk.dy(y), .dropout = dropout, .add = dx.add});
      }
    });
  }
  return cx.finish("dropout", y);
}

}  // namespace qkv::ops

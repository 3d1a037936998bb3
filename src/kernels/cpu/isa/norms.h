// One row of layer_norm (centred) or rms_norm:
//   xhat = (x - mean) rstd,   y = xhat (w + offset) + b           mean = 0 unless centred
//   dx   = rstd (g - mean(g) - xhat mean(g xhat)),   g = dy (w + offset)      without mean(g) unless centred
#pragma once

#include "kernels/cpu/isa/rows.h"

namespace qkv::kernels::cpu {
namespace {

// w + offset, 1 where there is no weight.
QKV_INLINE Lanes norm_weight(const float* w, float offset, int64_t i, int64_t n) {
  return w != nullptr ? load(w, i, n) + splat(offset) : splat(1);
}

void norm_row(NormCall& call) noexcept {
  NormCall c = call;
  const auto width = static_cast<float>(c.count);
  if (c.centred) {
    Lanes sums = splat(0);
    along(
        c.count, QKV_STEP(&) { sums = sums + load(c.x, i, n); });
    c.mean = sum(sums) / width;
  }
  const Lanes mean = splat(c.mean);
  Lanes squares = splat(0);
  along(
      c.count, QKV_STEP(&) {
        const Lanes apart = first_lanes(load(c.x, i, n) - mean, n, splat(0));
        squares = multiply_add(apart, apart, squares);
      });
  c.rstd = 1 / __builtin_sqrtf(sum(squares) / width + c.eps);
  const Lanes rstd = splat(c.rstd);
  along(
      c.count, QKV_STEP(=) {
        const Lanes y = (load(c.x, i, n) - mean) * rstd * norm_weight(c.w, c.offset, i, n);
        store(c.y, i, n, c.b != nullptr ? y + load(c.b, i, n) : y);
      });
  call.mean = c.mean;
  call.rstd = c.rstd;
}

void norm_dx_row(const NormDxCall& call) noexcept {
  const NormDxCall c = call;
  const Lanes mean = splat(c.mean), rstd = splat(c.rstd);
  Lanes sum_g = splat(0), sum_gx = splat(0);
  along(
      c.count, QKV_STEP(&) {
        const Lanes g = load(c.dy, i, n) * norm_weight(c.w, c.offset, i, n);  // 0 past the end
        sum_g = sum_g + g;
        sum_gx = multiply_add(g, (load(c.x, i, n) - mean) * rstd, sum_gx);
      });
  const auto width = static_cast<float>(c.count);
  const Lanes mean_g = splat(c.centred ? sum(sum_g) / width : 0), mean_gx = splat(sum(sum_gx) / width);
  along(
      c.count, QKV_STEP(=) {
        const Lanes g = load(c.dy, i, n) * norm_weight(c.w, c.offset, i, n);
        const Lanes xhat = (load(c.x, i, n) - mean) * rstd;
        put(c.dx, i, n, rstd * (g - mean_g - xhat * mean_gx), c.add);
      });
}

// dw += dy xhat,  db += dy: some rows, in order.
void norm_dw_rows(const NormDwCall& call) noexcept {
  const NormDwCall c = call;
  along(
      c.count, QKV_STEP(&) {
        Lanes dw = load(c.dw, i, n), db = c.db != nullptr ? load(c.db, i, n) : splat(0);
        for (int r = 0; r < c.rows; ++r) {
          const Lanes dy = load(c.dy[r], i, n);
          const Lanes xhat = (load(c.x[r], i, n) - splat(c.mean[r])) * splat(c.rstd[r]);
          dw = multiply_add(dy, xhat, dw);
          db = db + dy;
        }
        store(c.dw, i, n, dw);
        if (c.db != nullptr) store(c.db, i, n, db);
      });
}

}  // namespace
}  // namespace qkv::kernels::cpu

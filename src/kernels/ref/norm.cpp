// layer_norm and rms_norm; formulas in ops/layer_norm.cpp and ops/rms_norm.cpp.
#include <cmath>

#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
namespace {

template <class R>
R weight_at(const In<R>& w, int64_t c) {
  return w ? w[c] : R{1};
}

}  // namespace

void layer_norm(const Split& split, const LayerNormArgs& a) {
  in_real(a.mean, [&]<class R>() {
    const int64_t width = a.x.cols();
    const In<R> w(a.w), b(a.b);
    const R offset = w ? static_cast<R>(a.offset) : R{0};
    split(a.x.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto x = In<R>::row(a.x, r);
        R mean = 0;
        for (int64_t c = 0; c < width; ++c) mean += x[c];
        mean /= static_cast<R>(width);
        R variance = 0;
        for (int64_t c = 0; c < width; ++c) variance += (x[c] - mean) * (x[c] - mean);
        variance /= static_cast<R>(width);
        const R rstd = 1 / std::sqrt(variance + static_cast<R>(a.eps));
        const auto y = Out<R>::row(a.y, r);
        for (int64_t c = 0; c < width; ++c) {
          y.set(c, (x[c] - mean) * rstd * (weight_at(w, c) + offset) + (b ? b[c] : R{0}));
        }
        Out<R>(a.mean).set(r, mean);
        Out<R>(a.rstd).set(r, rstd);
      }
    });
  });
}

void layer_norm_backward(const Split& split, const LayerNormBackwardArgs& a) {
  in_real(a.mean, [&]<class R>() {
    const int64_t width = a.x.cols();
    const In<R> w(a.w), mean(a.mean), rstd(a.rstd);
    const R offset = w ? static_cast<R>(a.offset) : R{0};
    if (a.dx) {
      split(a.x.rows(), [&](Range rows) {
        for (int64_t r = rows.begin; r < rows.end; ++r) {
          const auto x = In<R>::row(a.x, r), dy = In<R>::row(a.dy, r);
          R mean_g = 0, mean_gx = 0;  // of g and g * xhat, g = dy * (w + offset)
          for (int64_t c = 0; c < width; ++c) {
            const R g = dy[c] * (weight_at(w, c) + offset);
            mean_g += g;
            mean_gx += g * (x[c] - mean[r]) * rstd[r];
          }
          mean_g /= static_cast<R>(width);
          mean_gx /= static_cast<R>(width);
          const auto dx = Out<R>::row(a.dx.tensor, r);
          for (int64_t c = 0; c < width; ++c) {
            const R xhat = (x[c] - mean[r]) * rstd[r];
            dx.put(c, rstd[r] * (dy[c] * (weight_at(w, c) + offset) - mean_g - xhat * mean_gx), a.dx.add);
          }
        }
      });
    }
    if (!a.dw && !a.db) return;
    split(width, [&](Range columns) {
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        R dw = 0, db = 0;
        for (int64_t r = 0; r < a.x.rows(); ++r) {
          const R dy = In<R>::row(a.dy, r)[c];
          dw += dy * (In<R>::row(a.x, r)[c] - mean[r]) * rstd[r];
          db += dy;
        }
        if (a.dw) Out<R>(a.dw.tensor).put(c, dw, a.dw.add);
        if (a.db) Out<R>(a.db.tensor).put(c, db, a.db.add);
      }
    });
  });
}

void rms_norm(const Split& split, const RmsNormArgs& a) {
  in_real(a.r, [&]<class R>() {
    const int64_t width = a.x.cols();
    const In<R> w(a.w);
    const R offset = w ? static_cast<R>(a.offset) : R{0};
    split(a.x.rows(), [&](Range rows) {
      for (int64_t n = rows.begin; n < rows.end; ++n) {
        const auto x = In<R>::row(a.x, n);
        R squares = 0;
        for (int64_t c = 0; c < width; ++c) squares += x[c] * x[c];
        const R r = 1 / std::sqrt(squares / static_cast<R>(width) + static_cast<R>(a.eps));
        const auto y = Out<R>::row(a.y, n);
        for (int64_t c = 0; c < width; ++c) y.set(c, x[c] * r * (weight_at(w, c) + offset));
        Out<R>(a.r).set(n, r);
      }
    });
  });
}

void rms_norm_backward(const Split& split, const RmsNormBackwardArgs& a) {
  in_real(a.r, [&]<class R>() {
    const int64_t width = a.x.cols();
    const In<R> w(a.w), r(a.r);
    const R offset = w ? static_cast<R>(a.offset) : R{0};
    if (a.dx) {
      split(a.x.rows(), [&](Range rows) {
        for (int64_t n = rows.begin; n < rows.end; ++n) {
          const auto x = In<R>::row(a.x, n), dy = In<R>::row(a.dy, n);
          R mean_gx = 0;
          for (int64_t c = 0; c < width; ++c) mean_gx += dy[c] * (weight_at(w, c) + offset) * x[c];
          mean_gx /= static_cast<R>(width);
          const auto dx = Out<R>::row(a.dx.tensor, n);
          for (int64_t c = 0; c < width; ++c) {
            const R g = dy[c] * (weight_at(w, c) + offset);
            dx.put(c, r[n] * (g - x[c] * r[n] * r[n] * mean_gx), a.dx.add);
          }
        }
      });
    }
    if (!a.dw) return;
    split(width, [&](Range columns) {
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        R dw = 0;
        for (int64_t n = 0; n < a.x.rows(); ++n) dw += In<R>::row(a.dy, n)[c] * In<R>::row(a.x, n)[c] * r[n];
        Out<R>(a.dw.tensor).put(c, dw, a.dw.add);
      }
    });
  });
}

}  // namespace qkv::kernels::ref

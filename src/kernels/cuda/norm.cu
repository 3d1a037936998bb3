// layer_norm and rms_norm; formulas in ops/layer_norm.cpp and ops/rms_norm.cpp. A block per row.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

// The factor of column c: w + offset, or 1.
template <class R>
__device__ R weight_at(const View& w, int64_t c, R offset) {
  return w ? w.get<R>(c) + offset : R{1};
}

template <class R>
void layer_norm_as(const Exec& exec, const LayerNormArgs& a) {
  const View y(a.y), mean_out(a.mean), rstd_out(a.rstd), x(a.x), w(a.w), b(a.b);
  const R eps = static_cast<R>(a.eps), offset = static_cast<R>(a.offset);
  each_block(exec, a.x.rows(), [=] __device__(int64_t r) {
    const int64_t from = x.row(r), to = y.row(r), width = x.cols();
    R mean = 0;
    for (int64_t c = threadIdx.x; c < width; c += kThreads) mean += x.get<R>(from + c);
    mean = block_sum(mean) / static_cast<R>(width);
    R variance = 0;
    for (int64_t c = threadIdx.x; c < width; c += kThreads) {
      const R d = x.get<R>(from + c) - mean;
      variance += d * d;
    }
    variance = block_sum(variance) / static_cast<R>(width);
    const R rstd = 1 / sqrt(variance + eps);
    for (int64_t c = threadIdx.x; c < width; c += kThreads) {
      y.set(to + c, (x.get<R>(from + c) - mean) * rstd * weight_at<R>(w, c, offset) + (b ? b.get<R>(c) : R{0}));
    }
    if (threadIdx.x == 0) {
      mean_out.set(r, mean);
      rstd_out.set(r, rstd);
    }
  });
}

template <class R>
void layer_norm_backward_as(const Exec& exec, const LayerNormBackwardArgs& a) {
  const GradView dx(a.dx), dw(a.dw), db(a.db);
  const View dy(a.dy), x(a.x), w(a.w), means(a.mean), rstds(a.rstd);
  const int64_t width = a.x.cols();
  const R offset = static_cast<R>(a.offset);
  if (a.dx) {
    each_block(exec, a.x.rows(), [=] __device__(int64_t r) {
      const int64_t of_x = x.row(r), of_dy = dy.row(r);
      const R mean = means.get<R>(r), rstd = rstds.get<R>(r);
      R mean_g = 0, mean_gx = 0;  // of g and g * xhat, g = dy * (w + offset)
      for (int64_t c = threadIdx.x; c < width; c += kThreads) {
        const R g = dy.get<R>(of_dy + c) * weight_at<R>(w, c, offset);
        mean_g += g;
        mean_gx += g * (x.get<R>(of_x + c) - mean) * rstd;
      }
      mean_g = block_sum(mean_g) / static_cast<R>(width);
      mean_gx = block_sum(mean_gx) / static_cast<R>(width);
      for (int64_t c = threadIdx.x; c < width; c += kThreads) {
        const R xhat = (x.get<R>(of_x + c) - mean) * rstd;
        dx.put(dx.view.row(r) + c,
               rstd * (dy.get<R>(of_dy + c) * weight_at<R>(w, c, offset) - mean_g - xhat * mean_gx));
      }
    });
  }
  if (a.dw) {
    sum_rows<R>(
        exec, a.x.rows(), width,
        [=] __device__(int64_t r, int64_t c) {
          return dy.get<R>(dy.row(r) + c) * (x.get<R>(x.row(r) + c) - means.get<R>(r)) * rstds.get<R>(r);
        },
        [=] __device__(int64_t c, R s) { dw.put(c, s); });
  }
  if (a.db) {
    sum_rows<R>(
        exec, a.x.rows(), width, [=] __device__(int64_t r, int64_t c) { return dy.get<R>(dy.row(r) + c); },
        [=] __device__(int64_t c, R s) { db.put(c, s); });
  }
}

template <class R>
void rms_norm_as(const Exec& exec, const RmsNormArgs& a) {
  const View y(a.y), r_out(a.r), x(a.x), w(a.w);
  const R eps = static_cast<R>(a.eps), offset = static_cast<R>(a.offset);
  each_block(exec, a.x.rows(), [=] __device__(int64_t n) {
    const int64_t from = x.row(n), to = y.row(n), width = x.cols();
    R squares = 0;
    for (int64_t c = threadIdx.x; c < width; c += kThreads) {
      const R v = x.get<R>(from + c);
      squares += v * v;
    }
    const R r = 1 / sqrt(block_sum(squares) / static_cast<R>(width) + eps);
    for (int64_t c = threadIdx.x; c < width; c += kThreads) {
      y.set(to + c, x.get<R>(from + c) * r * weight_at<R>(w, c, offset));
    }
    if (threadIdx.x == 0) r_out.set(n, r);
  });
}

template <class R>
void rms_norm_backward_as(const Exec& exec, const RmsNormBackwardArgs& a) {
  const GradView dx(a.dx), dw(a.dw);
  const View dy(a.dy), x(a.x), w(a.w), rs(a.r);
  const int64_t width = a.x.cols();
  const R offset = static_cast<R>(a.offset);
  if (a.dx) {
    each_block(exec, a.x.rows(), [=] __device__(int64_t n) {
      const int64_t of_x = x.row(n), of_dy = dy.row(n);
      const R r = rs.get<R>(n);
      R mean_gx = 0;
      for (int64_t c = threadIdx.x; c < width; c += kThreads) {
        mean_gx += dy.get<R>(of_dy + c) * weight_at<R>(w, c, offset) * x.get<R>(of_x + c);
      }
      mean_gx = block_sum(mean_gx) / static_cast<R>(width);
      for (int64_t c = threadIdx.x; c < width; c += kThreads) {
        const R g = dy.get<R>(of_dy + c) * weight_at<R>(w, c, offset);
        dx.put(dx.view.row(n) + c, r * (g - x.get<R>(of_x + c) * r * r * mean_gx));
      }
    });
  }
  if (a.dw) {
    sum_rows<R>(
        exec, a.x.rows(), width,
        [=] __device__(int64_t n, int64_t c) {
          return dy.get<R>(dy.row(n) + c) * x.get<R>(x.row(n) + c) * rs.get<R>(n);
        },
        [=] __device__(int64_t c, R s) { dw.put(c, s); });
  }
}

}  // namespace

void layer_norm(const Exec& exec, const LayerNormArgs& a) noexcept {
  in_real(a.mean, [&](auto r) { layer_norm_as<decltype(r)>(exec, a); });
}
void layer_norm_backward(const Exec& exec, const LayerNormBackwardArgs& a) noexcept {
  in_real(a.mean, [&](auto r) { layer_norm_backward_as<decltype(r)>(exec, a); });
}
void rms_norm(const Exec& exec, const RmsNormArgs& a) noexcept {
  in_real(a.r, [&](auto r) { rms_norm_as<decltype(r)>(exec, a); });
}
void rms_norm_backward(const Exec& exec, const RmsNormBackwardArgs& a) noexcept {
  in_real(a.r, [&](auto r) { rms_norm_backward_as<decltype(r)>(exec, a); });
}

}  // namespace qkv::kernels::cuda

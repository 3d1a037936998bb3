// layer_norm and rms_norm; formulas in ops/layer_norm.cpp and ops/rms_norm.cpp.
#include <cmath>
#include <utility>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/norm.h"

namespace qkv::kernels::cuda {
namespace {

// Decoding: weights are read while the kernel before still runs.
template <class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock) norm_few_rows(const __grid_constant__ Norm<X, Y, W> n) {
  let_next_start();
  const RowPart<W, kRowBlock> w(n.w, 0, n.width, static_cast<bool>(n.w));
  wait_for_last();
  const int64_t r = blockIdx.x;
  norm_row<kRowBlock>(
      n, r, true, [&](const auto& x, const auto& f) { x.each_with(w, f); },
      [&](int64_t c, const auto& out) { n.y.store(r, c, out); });
}

template <int T, class X, class Y, class W>
void norm_by(const Exec& exec, const Norm<X, Y, W>& n) {
  using R = typename X::Real;
  constexpr bool kCommon = std::is_same_v<X, Packed<float>> && std::is_same_v<Y, Packed<__nv_bfloat16>>;
  if constexpr (T == kRowBlock && kCommon) {
    constexpr int64_t kFewRows = 64;
    if (n.rows > 0 && n.rows <= kFewRows) {
      return launch(exec, norm_few_rows<X, Y, W>, static_cast<unsigned>(n.rows), kRowBlock, 0, n);
    }
  }
  each_row_by<T>(exec, n.rows, [=] __device__(int64_t r) {
    norm_row<T>(
        n, r, true,
        [&](const auto& x, const auto& f) {
          x.each([&](int64_t c, const R(&v)[kRowPack]) {
            R w[kRowPack] = {};
            if (n.w) n.w.load(0, c, w);
            f(c, v, w);
          });
        },
        [&](int64_t c, const R(&out)[kRowPack]) { n.y.store(r, c, out); });
  });
}

std::optional<HeldNorm> held;

bool hold(const Exec& exec, const HeldNorm& h) {
  const int64_t width = h.norm.width;
  if (!recording() || !hopper() || h.norm.rows != 1 || width < HeldNorm::kLeast || width > HeldNorm::kMost)
    return false;
  do_what_waits();
  held = h;
  let_wait([exec] { launch_held(exec, *std::exchange(held, std::nullopt)); });
  return true;
}

// Mean and bias are absent for rms_norm.
template <class Args>
void run_norm(const Exec& exec, const Args& a, const Tensor& mean, const Tensor& rstd, const Tensor& b) {
  in_row_form(rstd, {&a.x}, {&a.y}, {&a.w, &b}, [&]<class X, class Y, class W>(X, Y, W) {
    using R = typename X::Real;
    const Norm<X, Y, W> n{Y(a.y),
                          X(a.x),
                          W(a.w),
                          W(b),
                          numbers_of<R>(mean),
                          numbers_of<R>(rstd),
                          static_cast<R>(a.eps),
                          static_cast<R>(a.offset),
                          a.x.rows(),
                          a.x.cols()};
    if constexpr (std::is_same_v<Norm<X, Y, W>, HeldNorm::Form>) {
      if (hold(exec, {n, a.x, a.y})) return;
    }
    by_width(n.width, [&](auto t) { norm_by<decltype(t)::value>(exec, n); });
  });
}

}  // namespace

std::optional<HeldNorm> take_held_norm(const Tensor& y) {
  if (!held || held->y.data() != y.data() || held->norm.width != y.cols() || y.rows() != 1) return std::nullopt;
  forget_what_waits();
  return std::exchange(held, std::nullopt);
}

void launch_held(const Exec& exec, const HeldNorm& h) {
  norm_by<kRowBlock>(exec, h.norm);
}

void layer_norm(const Exec& exec, const LayerNormArgs& a) noexcept {
  run_norm(exec, a, a.mean, a.rstd, a.b);
}
void rms_norm(const Exec& exec, const RmsNormArgs& a) noexcept {
  run_norm(exec, a, {}, a.r, {});
}

}  // namespace qkv::kernels::cuda

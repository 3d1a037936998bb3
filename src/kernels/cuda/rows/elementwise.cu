// Activations, gated activations, dropout, rotary and softmax.
#include <cmath>

#include "kernels/cuda/attention/rotary.h"
#include "kernels/cuda/formulas.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/rows/row_parts.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
void activation_as(const Exec& exec, const ActivationArgs& a) {
  const Activation act = a.act;
  map<R, 1, 1>(exec, {Grad{a.y}}, {a.x}, [=] __device__(const auto& x, auto& y) {
    by_kind(act.kind, [&](auto kind) {
      each_of(y, [&](int i) { y[0][i] = kind.apply(static_cast<R>(act.alpha), x[0][i]).value; });
    });
  });
}

template <class R>
void activation_backward_as(const Exec& exec, const ActivationBackwardArgs& a) {
  const Activation act = a.act;
  map<R, 1, 2>(exec, {a.dx}, {a.dy, a.x}, [=] __device__(const auto& x, auto& y) {
    by_kind(act.kind, [&](auto kind) {
      each_of(y, [&](int i) { y[0][i] = x[0][i] * kind.apply(static_cast<R>(act.alpha), x[1][i]).slope; });
    });
  });
}

template <class R>
void gated_as(const Exec& exec, const GatedArgs& a) {
  const Gating form = a.form;
  map<R, 1, 2>(exec, {Grad{a.y}}, {a.gate, a.up}, [=] __device__(const auto& x, auto& y) {
    by_kind(form.act.kind, [&](auto kind) {
      each_of(y, [&](int i) {
        const GateParts<R> parts(kind, form, x[0][i], x[1][i]);
        y[0][i] = parts.act * parts.up;
      });
    });
  });
}

template <class R>
void gated_backward_as(const Exec& exec, const GatedBackwardArgs& a) {
  const Gating form = a.form;
  map<R, 2, 3>(exec, {a.dgate, a.dup}, {a.dy, a.gate, a.up}, [=] __device__(const auto& x, auto& y) {
    by_kind(form.act.kind, [&](auto kind) {
      each_of(y, [&](int i) {
        const GateParts<R> parts(kind, form, x[1][i], x[2][i]);
        y[0][i] = x[0][i] * parts.act_slope * parts.up;
        y[1][i] = x[0][i] * parts.act * parts.up_slope;
      });
    });
  });
}

// Four columns share a block of random words.
template <class A, int N>
void dropout_in(const Exec& exec, const DropoutArgs& a) {
  using R = typename A::Real;
  const A y(a.y), x(a.x), residual(a.residual);
  const Drop drop(a.dropout);
  each_pack<N>(exec, a.y.rows(), a.y.cols(), [=] __device__(int64_t r, int64_t c) {
    R v[N], joined[N] = {};
    x.load(r, c, v);
    if (residual) residual.load(r, c, joined);
#pragma unroll
    for (int four = 0; four < N; four += 4) {
      drop.apply(r, static_cast<uint64_t>(c + four) / 4, reinterpret_cast<R(&)[4]>(v[four]));
    }
    if (residual) {
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = joined[i] + v[i];
    }
    y.store(r, c, v);
  });
}

// A thread turns N pairs, or copies 2 N numbers that stay; a row is a head of a token.
template <class A, class Table, int N>
void rotary_in(const Exec& exec, const RotaryArgs& a) {
  using R = typename A::Real;
  const A y(a.y), x(a.x);
  const Table cos(a.cos), sin(a.sin);
  const int32_t* positions = a.positions.as<int32_t>();
  const int64_t pairs = a.cos.cols(), width = a.x.dim(2), first = a.first;
  const auto heads = static_cast<uint32_t>(a.x.dim(1));
  const bool interleaved = a.interleaved, inverse = a.inverse, add = a.add;
  const int64_t turning = pairs / N, each = turning + (width - 2 * pairs) / N;
  each_pack<1>(exec, a.x.dim(0) * a.x.dim(1), each, [=] __device__(int64_t row, int64_t task) {
    R one[N], two[N];
    if (task >= turning) {
      const int64_t still = (task - turning) * N, c = still < first ? still : still + 2 * pairs;
      x.load(row, c, one);
      return y.put(row, c, one, add);
    }
    const int64_t p = positions[static_cast<uint32_t>(row) / heads], i = task * N;
    R turn[N], lift[N];
    cos.load(p, i, turn);
    sin.load(p, i, lift);
    const int64_t at = first + (interleaved ? 2 * i : i), then = at + (interleaved ? N : pairs);
    x.load(row, at, one);
    x.load(row, then, two);
#pragma unroll
    for (int k = 0; k < N; ++k) lift[k] = inverse ? -lift[k] : lift[k];
    turn_pairs(one, two, turn, lift, interleaved);
    y.put(row, at, one, add);
    y.put(row, then, two, add);
  });
}

template <class A, int T>
void softmax_by(const Exec& exec, const SoftmaxArgs& a) {
  using R = typename A::Real;
  const A y(a.y), x(a.x);
  const int64_t width = a.x.cols();
  each_row_by<T>(exec, a.y.rows(), [=] __device__(int64_t r) {
    const RowPart<A, T> part(x, r, width);
    R highest = -INFINITY, total = 0;
    part.numbers([&](R v) { highest = v > highest ? v : highest; });
    highest = row_max<T>(highest);
    const bool empty = highest == -static_cast<R>(INFINITY);  // all hidden: zeros, never NaN
    if (!empty) part.numbers([&](R v) { total += exp(v - highest); });
    total = row_sum<T>(total);
    part.each([&](int64_t c, const R(&v)[kRowPack]) {
      R out[kRowPack];
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) out[i] = empty ? R{0} : exp(v[i] - highest) / total;
      y.store(r, c, out);
    });
  });
}
template <class A>
void softmax_in(const Exec& exec, const SoftmaxArgs& a) {
  a.x.cols() <= kWarpColumns ? softmax_by<A, 32>(exec, a) : softmax_by<A, kRowBlock>(exec, a);
}

template <class A, int T>
void softmax_backward_by(const Exec& exec, const SoftmaxBackwardArgs& a) {
  using R = typename A::Real;
  const A dx(a.dx.tensor), dy(a.dy), y(a.y);
  const bool add = a.dx.add;
  const int64_t width = a.y.cols();
  each_row_by<T>(exec, a.dy.rows(), [=] __device__(int64_t r) {
    const RowPart<A, T> of_y(y, r, width), of_dy(dy, r, width);
    R dot = 0;
    of_y.each_with(of_dy, [&](int64_t, const R(&p)[kRowPack], const R(&g)[kRowPack]) {
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) dot += p[i] * g[i];
    });
    dot = row_sum<T>(dot);
    of_y.each_with(of_dy, [&](int64_t c, const R(&p)[kRowPack], const R(&g)[kRowPack]) {
      R out[kRowPack];
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) out[i] = p[i] * (g[i] - dot);
      dx.put(r, c, out, add);
    });
  });
}
template <class A>
void softmax_backward_in(const Exec& exec, const SoftmaxBackwardArgs& a) {
  a.y.cols() <= kWarpColumns ? softmax_backward_by<A, 32>(exec, a) : softmax_backward_by<A, kRowBlock>(exec, a);
}

}  // namespace

void activation(const Exec& exec, const ActivationArgs& a) noexcept {
  in_real(a.y, [&](auto r) { activation_as<decltype(r)>(exec, a); });
}
void activation_backward(const Exec& exec, const ActivationBackwardArgs& a) noexcept {
  if (a.dx) in_real(a.dy, [&](auto r) { activation_backward_as<decltype(r)>(exec, a); });
}
void gated(const Exec& exec, const GatedArgs& a) noexcept {
  in_real(a.y, [&](auto r) { gated_as<decltype(r)>(exec, a); });
}
void gated_backward(const Exec& exec, const GatedBackwardArgs& a) noexcept {
  in_real(a.dy, [&](auto r) { gated_backward_as<decltype(r)>(exec, a); });
}
void dropout(const Exec& exec, const DropoutArgs& a) noexcept {
  in_form(a.y, {&a.y, &a.x, &a.residual}, [&]<class A, int N>(A, Count<N>) { dropout_in<A, N>(exec, a); });
}
void rotary(const Exec& exec, const RotaryArgs& a) noexcept {
  const auto even = [&](int64_t n) {
    return a.cos.cols() % n == 0 && a.first % n == 0 && a.x.rows() <= INT32_MAX && packed<float>({&a.cos, &a.sin}, 4);
  };
  using Bf16 = Packed<__nv_bfloat16>;
  if (a.y.dtype() == DType::f64) return rotary_in<Loose<double>, Loose<double>, 1>(exec, a);
  if (even(8) && packed<__nv_bfloat16>({&a.y, &a.x}, 8)) return rotary_in<Bf16, Packed<float>, 8>(exec, a);
  if (even(4) && packed<float>({&a.y, &a.x}, 4)) return rotary_in<Packed<float>, Packed<float>, 4>(exec, a);
  rotary_in<Loose<float>, Loose<float>, 1>(exec, a);
}
void softmax(const Exec& exec, const SoftmaxArgs& a) noexcept {
  in_float_form(a.y, {&a.y, &a.x}, [&](auto form) { softmax_in<decltype(form)>(exec, a); });
}
void softmax_backward(const Exec& exec, const SoftmaxBackwardArgs& a) noexcept {
  if (!a.dx) return;
  in_float_form(a.dy, {&a.dx.tensor, &a.dy, &a.y}, [&](auto form) { softmax_backward_in<decltype(form)>(exec, a); });
}

}  // namespace qkv::kernels::cuda

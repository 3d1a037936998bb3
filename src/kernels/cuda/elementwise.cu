// Activations, gated activations, dropout, rotary and softmax.
#include <cmath>

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
void activation_as(const Exec& exec, const ActivationArgs& a) {
  const View y(a.y), x(a.x);
  const Activation act = a.act;
  each_thread(exec, a.y.count(),
              [=] __device__(int64_t i) { y.set(y.element(i), apply(act, x.get<R>(x.element(i))).value); });
}

template <class R>
void activation_backward_as(const Exec& exec, const ActivationBackwardArgs& a) {
  const GradView dx(a.dx);
  const View dy(a.dy), x(a.x);
  const Activation act = a.act;
  each_thread(exec, a.dy.count(), [=] __device__(int64_t i) {
    dx.put(dx.view.element(i), dy.get<R>(dy.element(i)) * apply(act, x.get<R>(x.element(i))).slope);
  });
}

template <class R>
void gated_as(const Exec& exec, const GatedArgs& a) {
  const View y(a.y), gate(a.gate), up(a.up);
  const Gating form = a.form;
  each_thread(exec, a.y.count(), [=] __device__(int64_t i) {
    const GateParts<R> parts(form, gate.get<R>(gate.element(i)), up.get<R>(up.element(i)));
    y.set(y.element(i), parts.act * parts.up);
  });
}

template <class R>
void gated_backward_as(const Exec& exec, const GatedBackwardArgs& a) {
  const GradView dgate(a.dgate), dup(a.dup);
  const View dy(a.dy), gate(a.gate), up(a.up);
  const Gating form = a.form;
  each_thread(exec, a.dy.count(), [=] __device__(int64_t i) {
    const GateParts<R> parts(form, gate.get<R>(gate.element(i)), up.get<R>(up.element(i)));
    const R g = dy.get<R>(dy.element(i));
    if (dgate) dgate.put(dgate.view.element(i), g * parts.act_slope * parts.up);
    if (dup) dup.put(dup.view.element(i), g * parts.act * parts.up_slope);
  });
}

template <class R>
void dropout_as(const Exec& exec, const DropoutArgs& a) {
  const View y(a.y), x(a.x);
  const Drop drop(a.dropout);
  const bool add = a.add;
  const int64_t columns = a.y.cols();
  each_thread(exec, a.y.count(), [=] __device__(int64_t i) {
    const R factor = drop.factor<R>(i / columns, static_cast<uint64_t>(i % columns));
    y.put(y.element(i), factor == 0 ? R{0} : x.get<R>(x.element(i)) * factor, add);
  });
}

template <class R>
void rotary_as(const Exec& exec, const RotaryArgs& a) {
  const View y(a.y), x(a.x), cos(a.cos), sin(a.sin), positions(a.positions);
  const int64_t pairs = a.cos.cols(), heads = a.x.dim(1), width = a.x.dim(2), first = a.first;
  const bool interleaved = a.interleaved, inverse = a.inverse, add = a.add;
  const int64_t still = width - 2 * pairs, each = pairs + still;  // a thread turns a pair or copies a number
  each_thread(exec, a.x.dim(0) * heads * each, [=] __device__(int64_t task) {
    const int64_t n = task / each / heads, h = task / each % heads, i = task % each;
    if (i >= pairs) {
      const int64_t c = i - pairs < first ? i - pairs : i + pairs;
      return y.put(y.at(n, h, c), x.get<R>(x.at(n, h, c)), add);
    }
    const int64_t one = first + (interleaved ? 2 * i : i), two = one + (interleaved ? 1 : pairs);
    const int64_t p = positions.id(n);
    const R turn = cos.get<R>(cos.at(p, i)), lift = sin.get<R>(sin.at(p, i)), s = inverse ? -lift : lift;
    const R x1 = x.get<R>(x.at(n, h, one)), x2 = x.get<R>(x.at(n, h, two));
    y.put(y.at(n, h, one), x1 * turn - x2 * s, add);
    y.put(y.at(n, h, two), x2 * turn + x1 * s, add);
  });
}

template <class R>
void softmax_as(const Exec& exec, const SoftmaxArgs& a) {
  const View y(a.y), x(a.x);
  each_block(exec, a.y.rows(), [=] __device__(int64_t r) {
    const int64_t from = x.row(r), to = y.row(r), width = x.cols();
    R highest = -INFINITY;
    for (int64_t c = threadIdx.x; c < width; c += kThreads) {
      const R v = x.get<R>(from + c);
      highest = v > highest ? v : highest;
    }
    highest = block_max(highest);
    const bool empty = highest == -static_cast<R>(INFINITY);  // all hidden: zeros, never NaN
    R total = 0;
    for (int64_t c = threadIdx.x; c < width && !empty; c += kThreads) total += exp(x.get<R>(from + c) - highest);
    total = block_sum(total);
    for (int64_t c = threadIdx.x; c < width; c += kThreads) {
      y.set(to + c, empty ? R{0} : exp(x.get<R>(from + c) - highest) / total);
    }
  });
}

template <class R>
void softmax_backward_as(const Exec& exec, const SoftmaxBackwardArgs& a) {
  const GradView dx(a.dx);
  const View dy(a.dy), y(a.y);
  each_block(exec, a.dy.rows(), [=] __device__(int64_t r) {
    const int64_t of_dy = dy.row(r), of_y = y.row(r), width = y.cols();
    R dot = 0;
    for (int64_t c = threadIdx.x; c < width; c += kThreads) dot += y.get<R>(of_y + c) * dy.get<R>(of_dy + c);
    dot = block_sum(dot);
    for (int64_t c = threadIdx.x; c < width; c += kThreads) {
      dx.put(dx.view.row(r) + c, y.get<R>(of_y + c) * (dy.get<R>(of_dy + c) - dot));
    }
  });
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
  in_real(a.y, [&](auto r) { dropout_as<decltype(r)>(exec, a); });
}
void rotary(const Exec& exec, const RotaryArgs& a) noexcept {
  in_real(a.y, [&](auto r) { rotary_as<decltype(r)>(exec, a); });
}
void softmax(const Exec& exec, const SoftmaxArgs& a) noexcept {
  in_real(a.y, [&](auto r) { softmax_as<decltype(r)>(exec, a); });
}
void softmax_backward(const Exec& exec, const SoftmaxBackwardArgs& a) noexcept {
  if (a.dx) in_real(a.dy, [&](auto r) { softmax_backward_as<decltype(r)>(exec, a); });
}

}  // namespace qkv::kernels::cuda

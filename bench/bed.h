// The set-up of a measured op: arena, weights and data.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <vector>

#include "core/engine.h"
#include "random.h"

namespace qkv::bench {

inline double number(int64_t n) {
  return static_cast<double>(n);
}

template <class F>
double seconds_of(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One op's arena, context and weights, and how to run it forward or backward. Calls reuse the memory of the one before.
struct Bed {
  using Look = std::function<void(const Tensor& result)>;

  Bed(const Engine& engine, Precision precision)
      : arena(engine.device()), gradients(engine.device()), cx(engine.context(arena, precision)) {}

  Tensor tensor(const Shape& shape, DType dtype, float deviation = 1) {
    const Tensor t = cx.constant(shape, dtype);
    fill_tensor(t, deviation);
    return t;
  }

  Param& param(const Shape& shape, DType dtype = DType::f32) {
    Param& w = params.emplace_back("w", arena.device(), Format(dtype), shape);
    fill_tensor(w.master(), 0.05F);
    return w;
  }

  // In [-deviation, deviation).
  void fill_tensor(const Tensor& t, float deviation) {
    const uint64_t own = ++seed;
    if (t.dtype() == DType::bf16) {
      put<Bf16>(t, [=](uint64_t i) { return to_bf16(deviation * random_float(own, i)); });
    } else {
      put<float>(t, [=](uint64_t i) { return deviation * random_float(own, i); });
    }
  }

  // Element i becomes make(i), wherever the tensor is.
  template <class T, class Make>
  void put(const Tensor& t, const Make& make) {
    std::vector<T> numbers(static_cast<size_t>(t.count()));
    fill(pool(), numbers.data(), t.count(), make);
    arena.device().upload(t.data(), numbers.data(), t.count() * static_cast<int64_t>(sizeof(T)));
  }

  ThreadPool& pool() { return *cx.exec.pool; }
  bool queues() const { return cx.exec.stream != nullptr; }
  void wait() {
    if (queues()) arena.device().download(nullptr, nullptr, 0);
  }

  // Seconds of f, until the device has done it.
  template <class F>
  double timed(const F& f) {
    wait();
    return seconds_of([&] {
      f();
      wait();
    });
  }

  template <class Op>
  double forward(const Op& op, const Look& look = {}) {
    // A device that queues its work is given many calls before it is waited for.
    const int calls = queues() ? 16 : 1;
    const auto before = arena.mark();
    Tensor y;
    const double seconds = timed([&] {
      for (int i = 0; i < calls; ++i) {
        arena.rewind(before);
        y = op();
      }
    });
    if (look) look(y);
    arena.rewind(before);
    return seconds / calls;
  }

  // Times backward only. op(track) computes the output dy belongs to; look gets the gradient of op's first input, or of
  // the first weight if the inputs are constants.
  template <class Op>
  double backward(const Op& op, const Tensor& dy, const Look& look = {}) {
    const auto before = arena.mark();
    const auto before_gradients = gradients.mark();
    Tape tape(gradients);
    cx.tape = &tape;
    for (Param& w : params) w.clear_gradient();
    Tensor input;
    const Tensor y = op([&](const Tensor& t) {
      const Tensor tracked = tape.input(t);
      if (!input.defined()) input = tracked;
      return tracked;
    });
    tape.seed(cx, y, dy);
    const double seconds = timed([&] { tape.backward(cx); });
    if (look) look(input.defined() ? tape.gradient(input) : params.front().gradient());
    cx.tape = nullptr;
    gradients.rewind(before_gradients);
    arena.rewind(before);
    return seconds;
  }

  Arena arena, gradients;
  Context cx;
  std::deque<Param> params;
  uint64_t seed = 0;
};

inline Precision precision_of(DType compute) {
  return compute == DType::bf16 ? Precision::bf16() : Precision::f32();
}

}  // namespace qkv::bench

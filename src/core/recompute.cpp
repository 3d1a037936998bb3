#include "core/recompute.h"

#include "base/error.h"

namespace qkv {

Tensor recompute(Context& cx, const Tensor& x, std::function<Tensor(Context&, const Tensor&)> block) {
  if (cx.tape == nullptr) return block(cx, x);

  const Tensor y = cx.make(x.shape(), x.dtype());
  const auto before = cx.arena.mark();
  {
    Context forward = cx;
    forward.tape = nullptr;
    const Tensor result = block(forward, x.with_node(-1));
    QKV_CHECK(result.shape() == x.shape() && result.dtype() == x.dtype(), "recompute: the block turned ", x, " into ",
              result, Hint("only blocks that keep shape and dtype can be recomputed"));
    cx.kernels.copy(cx.exec, {.y = y, .x = result});
  }
  cx.arena.rewind(before);

  cx.tape->record("recompute", [=, block = std::move(block), rng = cx.rng, training = cx.training](Backward& bk) {
    // Straight into the outer gradient, so that sums have the same order as without recomputation.
    const Grad dx = bk.grad(x);
    const Tensor dy = bk.dy(y);
    const auto gradients_before = bk.gradients().mark();
    Tape inner(bk.gradients());
    Context again = bk.cx;
    again.tape = &inner;
    again.rng = rng;
    again.training = training;
    again.replaying = true;
    const Tensor input = dx ? inner.input(x, dx) : x.with_node(-1);
    inner.seed(again, block(again, input), dy);
    inner.backward(again);
    if (dx && !inner.gradient(input).defined()) bk.kernels.fill(bk.exec, {.y = dx.tensor, .value = 0});
    bk.gradients().rewind(gradients_before);
  });
  return y;
}

}  // namespace qkv

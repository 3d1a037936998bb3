#include "core/tape.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "core/context.h"
#include "core/gradient_watch.h"

namespace qkv {

Backward::Backward(Context& context, Tape& tape)
    : cx(context), kernels(context.kernels), exec(context.exec), tape_(tape) {}

Tensor Backward::dy(const Tensor& y) {
  Tape::Node& node = tape_.node_of(y);
  if (!tape_.find(node, cx)) {
    tape_.allocate(node);
    kernels.fill(exec, {.y = node.gradient, .value = 0});
  }
  return y.rebased(node.value.data(), node.gradient.data());
}

Tensor Backward::dy_if_any(const Tensor& y) {
  return y.defined() && tape_.find(tape_.node_of(y), cx) ? dy(y) : Tensor();
}

Tensor Backward::dy(const Tensor& y, DType wanted, const Dropout& dropout) {
  const Tape::Node& node = tape_.node_of(y);
  const bool there =
      node.rounded.defined() && node.rounded.dtype() == wanted && y.contiguous() && y.count() == node.value.count();
  if (there) return node.rounded.view(y.shape());
  if (dropout.p == 0) return dy(y);
  const Tensor dropped = make(y.shape(), wanted);
  kernels.dropout(exec, {.y = dropped, .x = dy(y), .dropout = dropout});
  return dropped;
}

Tensor Backward::rounded(const Tensor& x) {
  if (!kernels.rounds_norms || x.node() < 0) return {};
  Tape::Node& node = tape_.node_of(x);
  const bool whole = x.contiguous() && x.count() == node.value.count();
  if (!node.reads || node.input || !node.gradient.defined() || !whole) return {};
  if (!node.rounded.defined()) node.rounded = tape_.take(Format(*node.reads), node.value.shape());
  return node.rounded.view(x.shape());
}

Backward::Dropped Backward::dropped(const Tensor& x) {
  return x.node() < 0 ? Dropped{} : tape_.node_of(x).dropped;
}

Tensor Backward::only_rounded(const Tensor& x) {
  if (x.node() < 0 || cx.guard_finite) return {};
  Tape::Node& node = tape_.node_of(x);
  const bool whole = x.contiguous() && x.count() == node.value.count(),
             handed = std::any_of(handed_.begin(), handed_.end(), [&](const Handed&h) { return h.x == x.node(); }),
             first = !node.gradient.defined() && !node.rounded.defined() && !handed;
  if (!node.reads || node.dropped.dropout.p > 0 || node.kept || node.input || !whole || !first) return {};
  node.rounded = tape_.take(Format(*node.reads), node.value.shape());
  return node.rounded.view(x.shape());
}

Grad Backward::grad(const Tensor& x) {
  copy_handed(x);
  return tape_.use(x, cx);
}

Grad Backward::grad(const Param& w) {
  if (cx.gradient_watch != nullptr && w.trainable) cx.gradient_watch->adds(w);
  if (cx.arena.planning()) {  // a plan does not touch the weights; this address is never read
    return w.trainable ? Grad{Tensor(w.device(), nullptr, cx.precision.exact, w.shape())} : Grad{};
  }
  used_.push_back(&w);
  return w.use_gradient(cx.precision.exact);
}

void Backward::pass_on(const Tensor& y, const Tensor& x) {
  if (x.node() < 0) return;
  if (can_hand_over(y, x)) {
    handed_.push_back({y.node(), x.node()});
  } else if (const Grad dx = grad(x)) {
    kernels.copy(exec, {.y = dx.tensor, .x = dy(y), .add = dx.add});
  }
}

bool Backward::can_hand_over(const Tensor& y, const Tensor& x) const {
  const Tape::Node &from = tape_.node_of(y), &to = tape_.node_of(x);
  const auto whole = [](const Tensor& t, const Tape::Node& node) {
    return t.contiguous() && t.count() == node.value.count();
  };
  const bool taken =
      std::any_of(handed_.begin(), handed_.end(), [&](const Handed& h) { return h.y == y.node() || h.x == x.node(); });
  return !taken && from.gradient.defined() && !from.kept && !to.gradient.defined() && !to.rounded.defined() &&
         !to.reserved.defined() && from.value.format() == to.value.format() && whole(y, from) && whole(x, to);
}

void Backward::copy_handed(const Tensor& x) {
  const auto handed = std::find_if(handed_.begin(), handed_.end(), [&](const Handed& h) { return h.x == x.node(); });
  if (handed == handed_.end()) return;
  Tape::Node& to = tape_.node_of(x);
  tape_.allocate(to);
  const Tensor& from = tape_.nodes_[static_cast<size_t>(handed->y)].gradient;
  kernels.copy(exec, {.y = to.gradient, .x = from.view(to.value.shape())});
  handed_.erase(handed);
}

void Backward::hand_over() {
  for (const Handed& h : handed_) {
    Tape::Node &from = tape_.nodes_[static_cast<size_t>(h.y)], &to = tape_.nodes_[static_cast<size_t>(h.x)];
    to.gradient = std::exchange(from.gradient, {}).view(to.value.shape());
  }
  handed_.clear();
}

Tensor Backward::make(const Shape& shape, DType dtype) {
  return cx.arena.take(dtype, shape);
}

Arena& Backward::gradients() {
  return tape_.gradients_;
}

Tensor Tape::track(const Tensor& t) {
  const auto node = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({.value = t});
  return t.with_node(node);
}

Tensor Tape::input(const Tensor& t) {
  const Tensor tracked = track(t);
  nodes_.back().kept = nodes_.back().input = true;
  return tracked;
}

Tensor Tape::input(const Tensor& t, const Grad& into) {
  const Tensor tracked = input(t);
  (into.add ? nodes_.back().gradient : nodes_.back().reserved) = into.tensor;
  return tracked;
}

void Tape::record(const char* op, Step step) {
  const size_t first = steps_.empty() ? 0 : steps_.back().end_node;
  steps_.push_back({.op = op, .step = std::move(step), .first_node = first, .end_node = nodes_.size()});
}

void Tape::keep(const Tensor& t) {
  node_of(t).kept = true;
}

void Tape::reads_rounded(const Tensor& y, DType dtype, const Backward::Dropped& dropped) {
  if (y.dtype() == dtype) return;
  Node& node = node_of(y);
  node.reads = dtype;
  node.dropped = dropped;
}

void Tape::set_operand(const Tensor& y, const Tensor& rounded) {
  node_of(y).operand = rounded;
}

Tensor Tape::operand(const Tensor& y) const {
  if (y.node() < 0 || static_cast<size_t>(y.node()) >= nodes_.size()) return {};
  const Node& node = nodes_[static_cast<size_t>(y.node())];
  const bool whole = y.data() == node.value.data() && y.shape() == node.value.shape() && y.contiguous();
  return whole ? node.operand : Tensor();
}

void Tape::backward(Context& cx, const Tensor& loss) {
  QKV_CHECK(loss.count() == 1, "backward: the loss must be one number but is ", loss,
            Hint("reduce it, or give the gradient of every element"));
  const auto before = cx.arena.mark();
  const Tensor one = cx.arena.take(loss.format(), loss.shape());
  cx.kernels.fill(cx.exec, {.y = one, .value = 1});
  seed(cx, loss, one);
  cx.arena.rewind(before);
  backward(cx);
}

void Tape::seed(Context& cx, const Tensor& y, const Tensor& dy) {
  QKV_CHECK(y.shape() == dy.shape() && y.dtype() == dy.dtype(), "backward: the output is ", y, " but its gradient is ",
            dy, Hint("give the gradient the output's shape and dtype"));
  const Grad grad = use(y, cx);
  QKV_CHECK(grad, "backward: the output ", y, " was not made under this tape",
            Hint("set cx.tape before the forward pass"));
  cx.kernels.copy(cx.exec, {.y = grad.tensor, .x = dy, .add = grad.add});
}

void Tape::backward(Context& cx) {
  Backward bk(cx, *this);
  while (!steps_.empty()) {
    const Recorded& step = steps_.back();
    if (reached(step)) {
      const auto before = cx.arena.mark();
      step.step(bk);
      bk.hand_over();
      cx.arena.rewind(before);
      if (cx.guard_finite) check_passed_on(bk, step);
      bk.used_.clear();
    }
    for (size_t n = step.first_node; n < step.end_node; ++n) {
      if (!nodes_[n].kept) release(nodes_[n]);
    }
    steps_.pop_back();
    if (cx.gradient_watch != nullptr) cx.gradient_watch->step_done(cx, *this);
  }
}

void Tape::check_passed_on(Backward& bk, const Recorded& step) const {
  for (size_t n = 0; n < step.end_node; ++n) {
    const bool own_output = n >= step.first_node && !nodes_[n].input;
    if (nodes_[n].gradient.defined() && !own_output) {
      bk.cx.check_finite(step.op, "the gradient it passes on", nodes_[n].gradient);
    }
  }
  for (const Param* w : bk.used_) {
    if (w->gradient().defined())
      bk.cx.check_finite(step.op, ("the gradient of '" + w->name() + "'").c_str(), w->gradient());
  }
}

Tensor Tape::gradient(const Tensor& t) const {
  QKV_CHECK(t.node() >= 0 && static_cast<size_t>(t.node()) < nodes_.size(), "gradient: ", t,
            " was not made under this tape");
  const Node& node = nodes_[static_cast<size_t>(t.node())];
  if (!node.gradient.defined()) return {};
  return t.rebased(node.value.data(), node.gradient.data());
}

Tape::Node& Tape::node_of(const Tensor& t) {
  QKV_ASSERT(t.node() >= 0 && static_cast<size_t>(t.node()) < nodes_.size(), "tape: ", t, " has no node here");
  return nodes_[static_cast<size_t>(t.node())];
}

Grad Tape::use(const Tensor& x, Context& cx) {
  if (x.node() < 0 || !is_float(x.dtype())) return {};
  Node& node = node_of(x);
  for (int axis = 0; axis < x.rank(); ++axis) {
    QKV_ASSERT(x.stride(axis) != 0 || x.dim(axis) <= 1 || x.count() == 0, "tape: ", x,
               " repeats an axis, so it can be read but has no gradient");
  }
  bool add = true;
  const bool found = find(node, cx);
  give_back(node.rounded);
  if (!found) {
    allocate(node);
    add = x.count() != node.value.count();
    if (add) cx.kernels.fill(cx.exec, {.y = node.gradient, .value = 0});  // only a part is about to be written
  }
  return {x.rebased(node.value.data(), node.gradient.data()).with_node(-1), add};
}

bool Tape::find(Node& node, Context& cx) {
  if (!node.gradient.defined() && node.rounded.defined()) {
    allocate(node);
    cx.kernels.copy(cx.exec, {.y = node.gradient, .x = node.rounded});
  }
  return node.gradient.defined();
}

void Tape::allocate(Node& node) {
  if (node.reserved.defined()) {
    node.gradient = node.reserved;
    return;
  }
  node.gradient = take(node.value.format(), node.value.shape());
}

Tensor Tape::take(Format format, const Shape& shape) {
  std::vector<Tensor>& free = free_[format.bytes_for(shape)];
  if (free.empty()) return gradients_.take(format, shape);
  const Tensor made(free.back().device(), free.back().data(), format, shape);
  free.pop_back();
  return made;
}

void Tape::give_back(Tensor& t) {
  if (!t.defined()) return;
  free_[t.format().bytes_for(t.shape())].push_back(t);
  t = Tensor();
}

void Tape::release(Node& node) {
  give_back(node.gradient);
  give_back(node.rounded);
}

bool Tape::reached(const Recorded& step) const {
  for (size_t n = step.first_node; n < step.end_node; ++n) {
    if ((nodes_[n].gradient.defined() || nodes_[n].rounded.defined()) && !nodes_[n].input) return true;
  }
  return false;
}

}  // namespace qkv

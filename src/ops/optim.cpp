// src/ops/optim.cpp        g is the gradient times grad_factor; t counts from 1
//
// AdamW   m = b1 m + (1 - b1) g      v = b2 v + (1 - b2) g^2
//         w = w (1 - lr decay) - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
// SGD     buffer = momentum buffer + g      w = w - lr (buffer + decay w)
// Muon    buffer = momentum buffer + g      u = g + momentum buffer
//         w = w (1 - lr decay) - lr 0.2 sqrt(max(R, C)) orthogonal(u)
//         orthogonal: X = u / |u|, five times X = a X + b (X X^T) X + c (X X^T)^2 X (Newton-Schulz, quintic), which
//         moves all singular values towards 1. The factor gives the update the rms of an AdamW step, so both can share
//         one lr.
#include "ops/optim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/checks.h"

namespace qkv::ops {
namespace {

// The gradient of a step; while planning, a shape without memory.
Tensor gradient_of(Context& cx, const char* op, const Param& w) {
  QKV_CHECK(w.format().plain() && (w.format().dtype == DType::f32 || w.format().dtype == DType::f64), op,
            ": the weight '", w.name(), "' is ", w.format(), " but optimisers need an f32 or f64 master",
            Hint("keep masters in f32; the pass makes its own bf16 copies"));
  if (cx.arena.planning()) return w.master(cx);
  QKV_CHECK(w.gradient().defined(), op, ": the weight '", w.name(), "' ", w.shape(), " has no gradient",
            Hint("run a backward pass first, or leave the weight out"));
  return w.gradient();
}

void check_state(Context& cx, const char* op, const char* name, const Param& w, const Tensor& state) {
  QKV_CHECK(state.defined(), op, ": the weight '", w.name(), "' ", w.shape(), " has no ", name,
            Hint("give zeros of the weight's shape at the start"));
  check_vectors(cx, op, name, state);
  check_shape(op, name, state, w.shape());
  QKV_CHECK(state.contiguous(), op, ": ", name, " ", state, " must be contiguous", Hint("allocate it in one piece"));
}

double download_number(Context& cx, const Tensor& t) {
  double value = 0;
  if (!cx.arena.planning()) t.device().download(&value, t.data(), size_of(DType::f64));
  return value;
}

double sum_of_squares(Context& cx, const Tensor& x) {
  const auto before = cx.arena.mark();
  const Tensor total = cx.constant({1}, DType::f64);
  cx.kernels.fill(cx.exec, {.y = total, .value = 0});
  cx.kernels.sum_squares(cx.exec, {.y = total, .x = x});
  const double value = download_number(cx, total);
  cx.arena.rewind(before);
  return value;
}

// y = x w^T for matrices of the context's arena.
Tensor times_transposed(Context& cx, const Tensor& x, const Tensor& w) {
  const Tensor y = cx.constant({x.dim(0), w.dim(0)}, x.dtype());
  cx.kernels.linear(cx.exec, {.y = y, .x = x, .w = w, .b = {}, .groups = {}});
  return y;
}

// y += a b: how a gradient dy reaches the input of a linear op with the weight b.
void add_product(Context& cx, const Tensor& y, const Tensor& a, const Tensor& b) {
  cx.kernels.linear_backward(cx.exec, {.dx = {y, true}, .dy = a, .x = y, .w = b});
}

// u [R, C] becomes the nearest matrix with singular values around 1, in place.
void orthogonalise(Context& cx, const Tensor& u) {
  const auto before = cx.arena.mark();
  const bool tall = u.dim(0) > u.dim(1);  // works on the transpose
  const double norm = std::sqrt(sum_of_squares(cx, u));
  const Tensor wide = tall ? u.transposed(0, 1) : u;
  Tensor x = cx.constant(wide.shape(), u.dtype()), next = cx.constant(wide.shape(), u.dtype());
  cx.kernels.copy(cx.exec, {.y = x, .x = wide, .factor = 1 / (norm + 1e-7)});
  for (int step = 0; step < NewtonSchulz::kSteps; ++step) {
    const auto inner = cx.arena.mark();
    const Tensor gram = times_transposed(cx, x, x);        // X X^T, symmetric
    const Tensor poly = times_transposed(cx, gram, gram);  // (X X^T)^2
    const Tensor mixed = cx.constant(gram.shape(), gram.dtype());
    cx.kernels.copy(cx.exec, {.y = mixed, .x = gram, .factor = NewtonSchulz::b});
    cx.kernels.copy(cx.exec, {.y = mixed, .x = poly, .factor = NewtonSchulz::c, .add = true});
    cx.kernels.copy(cx.exec, {.y = next, .x = x, .factor = NewtonSchulz::a});
    add_product(cx, next, mixed, x);
    std::swap(x, next);
    cx.arena.rewind(inner);
  }
  cx.kernels.copy(cx.exec, {.y = u, .x = tall ? x.transposed(0, 1) : x});
  cx.arena.rewind(before);
}

// Matrix after matrix.
void muon_by_products(Context& cx, const MuonArgs& a) {
  const auto before = cx.arena.mark();
  const Shape& shape = a.w.shape();
  const Tensor update = cx.constant(shape, a.w.dtype());
  // buffer = momentum buffer + g, then u = g + momentum buffer
  cx.kernels.copy(cx.exec, {.y = update, .x = a.buffer, .factor = a.momentum});
  cx.kernels.copy(cx.exec, {.y = update, .x = a.g, .factor = a.grad_factor, .add = true});
  cx.kernels.copy(cx.exec, {.y = a.buffer, .x = update});
  cx.kernels.copy(cx.exec, {.y = update, .x = a.g, .factor = a.grad_factor});
  cx.kernels.copy(cx.exec, {.y = update, .x = a.buffer, .factor = a.momentum, .add = true});
  const int64_t matrices = shape.rank() == 3 ? shape[0] : 1;
  for (int64_t e = 0; e < matrices; ++e) {
    orthogonalise(cx, shape.rank() == 3 ? update.slice(0, e, 1).view({shape[-2], shape[-1]}) : update);
  }
  const Tensor decayed = cx.constant(shape, a.w.dtype());
  cx.kernels.copy(cx.exec, {.y = decayed, .x = a.w, .factor = a.shrink});
  cx.kernels.copy(cx.exec, {.y = decayed, .x = update, .factor = a.step, .add = true});
  cx.kernels.copy(cx.exec, {.y = a.w, .x = decayed});
  cx.arena.rewind(before);
}

MuonArgs muon_arguments(Context& cx, const MuonStep& one) {
  Param& w = *one.weight;
  const Muon& rule = one.rule;
  const Tensor g = gradient_of(cx, "muon", w);
  check_state(cx, "muon", "buffer", w, one.buffer);
  const Shape& shape = w.shape();
  QKV_CHECK(shape.rank() == 2 || shape.rank() == 3, "muon: the weight '", w.name(), "' is ", shape,
            " but Muon works on matrices [R, C] or [E, R, C]", Hint("use AdamW for this one"));
  check_number("muon", "lr", rule.lr, 0, 1e3);
  check_number("muon", "momentum", rule.momentum, 0, 1 - 1e-12);
  check_number("muon", "decay", rule.decay, 0, 1e3);
  const auto longest = static_cast<double>(std::max(shape[-2], shape[-1]));
  return {.w = w.writable(cx),
          .g = g,
          .buffer = one.buffer,
          .momentum = rule.momentum,
          .shrink = 1 - rule.lr * rule.decay,
          .step = -rule.lr * 0.2 * std::sqrt(longest)};
}

AdamWArgs adamw_arguments(Context& cx, Param& w, const AdamState& state, const AdamW& rule) {
  const Tensor g = gradient_of(cx, "adamw", w);
  check_state(cx, "adamw", "m", w, state.m);
  check_state(cx, "adamw", "v", w, state.v);
  check_number("adamw", "lr", rule.lr, 0, 1e3);
  check_number("adamw", "beta1", rule.beta1, 0, 1 - 1e-12);
  check_number("adamw", "beta2", rule.beta2, 0, 1 - 1e-12);
  check_number("adamw", "eps", rule.eps, 1e-30, 1);
  check_number("adamw", "decay", rule.decay, 0, 1e3);
  return {.w = w.writable(cx),
          .g = g,
          .m = state.m,
          .v = state.v,
          .lr = rule.lr,
          .beta1 = rule.beta1,
          .beta2 = rule.beta2,
          .eps = rule.eps,
          .decay = rule.decay,
          .step = state.step + 1};
}

template <class Args>
void set_factor(const char* op, std::vector<Args>& all, FunctionRef<double()> grad_factor) {
  const double factor = all.empty() ? 1 : grad_factor();
  check_number(op, "gradient factor", factor, 0, 1e30);
  for (Args& one : all) one.grad_factor = factor;
}

}  // namespace

void adamw_step(Context& cx, Param& w, AdamState& state, const AdamW& rule, double grad_factor) {
  AdamWStep step{.weight = &w, .state = &state, .rule = rule};
  adamw_steps(cx, {&step, 1}, [&] { return grad_factor; });
}

void adamw_steps(Context& cx, std::span<const AdamWStep> all, FunctionRef<double()> grad_factor) {
  std::vector<AdamWArgs> args;
  args.reserve(all.size());
  for (const AdamWStep& one : all) args.push_back(adamw_arguments(cx, *one.weight, *one.state, one.rule));
  const bool at_once = cx.kernels.adamw_set != nullptr && args.size() > 1;
  for (size_t i = 0; at_once && i < args.size(); ++i) args[i].copy = all[i].weight->copy();
  set_factor("adamw", args, grad_factor);
  if (at_once) {
    cx.kernels.adamw_set(cx.exec, args);
  } else {
    for (const AdamWArgs& one : args) cx.kernels.adamw(cx.exec, one);
  }
  for (const AdamWStep& one : all) {
    if (!cx.arena.planning()) ++one.state->step;
    one.weight->updated(at_once);
  }
}

void sgd_step(Context& cx, Param& w, const Tensor& buffer, const Sgd& rule, double grad_factor) {
  const Tensor g = gradient_of(cx, "sgd", w);
  check_number("sgd", "lr", rule.lr, 0, 1e3);
  check_number("sgd", "momentum", rule.momentum, 0, 1 - 1e-12);
  check_number("sgd", "decay", rule.decay, 0, 1e3);
  check_number("sgd", "gradient factor", grad_factor, 0, 1e30);
  QKV_CHECK(rule.momentum == 0 || buffer.defined(), "sgd: momentum is ", rule.momentum, " but '", w.name(),
            "' has no buffer", Hint("give zeros of the weight's shape at the start"));
  if (buffer.defined()) check_state(cx, "sgd", "buffer", w, buffer);

  cx.kernels.sgd(cx.exec, {.w = w.writable(cx),
                           .g = g,
                           .buffer = rule.momentum == 0 ? Tensor() : buffer,
                           .lr = rule.lr,
                           .momentum = rule.momentum,
                           .decay = rule.decay,
                           .grad_factor = grad_factor});
  w.updated();
}

void muon_step(Context& cx, Param& w, const Tensor& buffer, const Muon& rule, double grad_factor) {
  const MuonStep step{.weight = &w, .buffer = buffer, .rule = rule};
  muon_steps(cx, {&step, 1}, [&] { return grad_factor; });
}

void muon_steps(Context& cx, std::span<const MuonStep> all, FunctionRef<double()> grad_factor) {
  std::vector<MuonArgs> args;
  args.reserve(all.size());
  for (const MuonStep& one : all) args.push_back(muon_arguments(cx, one));
  set_factor("muon", args, grad_factor);
  if (cx.kernels.muon_set != nullptr) {
    for (size_t i = 0; i < args.size(); ++i) args[i].copy = all[i].weight->copy();
    cx.kernels.muon_set(cx.exec, args);
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].done) muon_by_products(cx, args[i]);
    all[i].weight->updated(args[i].done);
  }
}

SquareNorms::SquareNorms(Context& cx, std::span<const Param* const> params) : params_(params.begin(), params.end()) {
  if (params.empty() || cx.arena.planning()) return;
  const auto count = static_cast<int64_t>(params.size());
  totals_ = cx.constant({count}, DType::f64);
  cx.kernels.fill(cx.exec, {.y = totals_, .value = 0});
  std::vector<SumSquaresArgs> args;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor gradient = params_[static_cast<size_t>(i)]->gradient();
    if (gradient.defined()) args.push_back({.y = totals_.slice(0, i, 1), .x = gradient});
  }
  if (cx.kernels.sum_squares_set != nullptr) {
    cx.kernels.sum_squares_set(cx.exec, args);
  } else {
    for (const SumSquaresArgs& one : args) cx.kernels.sum_squares(cx.exec, one);
  }
}

std::vector<double> SquareNorms::read() const {
  std::vector<double> squares(params_.size(), 0);
  if (!totals_.defined()) return squares;
  totals_.device().download(squares.data(), totals_.data(), totals_.count() * size_of(DType::f64));
  for (size_t i = 0; i < params_.size(); ++i) {
    QKV_CHECK(std::isfinite(squares[i]), "global_norm: the gradient of '", params_[i]->name(), "' ",
              params_[i]->shape(), " has the norm ", std::sqrt(squares[i]),
              Hint("the step is refused; turn on guard_finite to learn which op made the first NaN"));
  }
  return squares;
}

double global_norm(Context& cx, std::span<const Param* const> params) {
  const auto before = cx.arena.mark();
  double total = 0;
  for (const double one : SquareNorms(cx, params).read()) total += one;
  cx.arena.rewind(before);
  return std::sqrt(total);
}

double clip_factor(double norm, double max_norm) {
  check_number("clip_factor", "norm", norm, 0, std::numeric_limits<double>::max());
  check_number("clip_factor", "max_norm", max_norm, 1e-30, 1e30);
  return norm > max_norm ? max_norm / norm : 1;
}

}  // namespace qkv::ops

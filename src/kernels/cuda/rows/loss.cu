// The cross-entropy with the output projection.
//
// Logits of bf16 operands are bf16, rounded once by the product; all others are as wide as the losses. Forward reads them
// once: maximum and sum together. Where the op keeps them for backward, forward leaves their gradients there, of the sum of
// all losses; what the loss is multiplied by joins in the products of backward. Elsewhere they exist for some rows at a time.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/rows/loss_rows.h"

namespace qkv::kernels::cuda {
namespace {

Operand rows_of(const Tensor& t, int64_t first) {
  return {.data = t.data() + first * t.stride(0) * size_of(t.dtype()), .dtype = t.dtype(), .row = t.stride(0), .k = 1};
}
Operand transposed(Operand o) {
  std::swap(o.row, o.k);
  return o;
}

DType logit_type(const Tensor& losses, const Tensor& x, const Tensor& w) {
  return x.dtype() == DType::bf16 && w.dtype() == DType::bf16 ? DType::bf16 : losses.dtype();
}

// Memory for logits [rows, V] with whole lines apart: what the op gave, or else as many rows as fit into
// scratch, which follows from the vocabulary alone. The last 16th of scratch is for sums over rows.
struct Logits {
  Tensor all;
  Exec sums;

  Logits(const Exec& exec, const Tensor& given, DType type, int64_t vocabulary) : sums(exec) {
    const int64_t bytes = exec.scratch.count(), kept = bytes / 16 / 256 * 256, columns = padded(vocabulary);
    sums.scratch = exec.scratch.view({bytes}).slice(0, bytes - kept, kept);
    const int64_t fit = std::max<int64_t>((bytes - kept) / (columns * size_of(type)), 1);
    all = given.defined()
              ? given
              : Tensor(*exec.device, exec.scratch.data(), Format(type), {fit > 128 ? fit / 128 * 128 : fit, columns});
    all = all.slice(1, 0, vocabulary);
  }
};

void find_logits(const Exec& exec, const Tensor& x, const Tensor& w, const Tensor& b, int64_t first,
                 const Tensor& out) {
  product(exec, {.a = rows_of(x, first),
                 .b = rows_of(w, 0),
                 .m = out.dim(0),
                 .n = w.dim(0),
                 .k = x.cols(),
                 .out = View(out),
                 .bias = View(b),
                 .out_columns = std::min(padded(w.dim(0)), out.stride(0))});
}

// With `gradients` logits become theirs.
template <class R, class L>
void losses_of(const Exec& exec, const CrossEntropyArgs& a, const Tensor& logits, int64_t first, bool gradients) {
  const HeadRule<R, L> rule(a.rule, logits);
  const HeadRows<R, L> rows{logits.as<L>(), a.targets.as<int32_t>() + first, a.losses.as<R>() + first,
                            a.lse.as<R>() + first};
  if (logits.dim(0) == 0) return;
  if constexpr (sizeof(L) == 2) {
    if (gradients && in_shared_memory(exec, rule, rows, logits.dim(0))) return;
  }
  each_block<kHeadThreads>(exec, logits.dim(0), [=] __device__(int64_t r) {
    L* row = rows.logits + r * rule.stride;
    const int32_t target = rows.targets[r];
    const R at_target = target != rule.ignore ? rule.capped(static_cast<R>(row[target])) : R{0};
    const auto sums = rule.sums(row);
    if (gradients) rule.gradients(row, sums.lse, target);
    if (threadIdx.x != 0) return;
    rows.losses[r] = rule.loss(target, at_target, sums);
    rows.lses[r] = sums.lse;
  });
}

template <class R, class L>
void cross_entropy_as(const Exec& exec, const CrossEntropyArgs& a) {
  const Logits logits(exec, a.logits, logit_type(a.losses, a.x, a.w), a.w.dim(0));
  const int64_t at_once = logits.all.dim(0);
  for (int64_t first = 0; first < a.x.rows(); first += at_once) {
    const Tensor some = logits.all.slice(0, 0, std::min(at_once, a.x.rows() - first));
    find_logits(exec, a.x, a.w, a.b, first, some);
    losses_of<R, L>(exec, a, some, first, a.logits.defined());
  }
}

// Logits become their gradients.
template <class R, class L>
void turn_into_gradients(const Exec& exec, const CrossEntropyBackwardArgs& a, const Tensor& logits, int64_t first) {
  const HeadRule<R, L> rule(a.rule, logits);
  L* numbers = logits.as<L>();
  const int32_t* targets = a.targets.as<int32_t>() + first;
  const R* lses = a.lse.as<R>() + first;
  each_block<kHeadThreads>(exec, logits.dim(0), [=] __device__(int64_t r) {
    L* row = numbers + r * rule.stride;
    rule.gradients(row, lses[r], targets[r]);
  });
}

template <class R, class L>
void cross_entropy_backward_as(const Exec& exec, const CrossEntropyBackwardArgs& a) {
  const Logits logits(exec, a.logits, logit_type(a.lse, a.x, a.w), a.w.dim(0));
  const int64_t vocabulary = a.w.dim(0), all = a.x.rows(), at_once = std::min(logits.all.dim(0), kLogitRows);
  const bool kept = a.logits.defined() && a.kept;
  const auto dx_of = [&](const Tensor& gradients, int64_t first) {
    product(exec, {.a = rows_of(gradients, 0),
                   .b = transposed(rows_of(a.w, 0)),
                   .m = gradients.dim(0),
                   .n = a.x.cols(),
                   .k = vocabulary,
                   .out = View(a.dx.tensor.slice(0, first, gradients.dim(0))),
                   .scale = View(a.dloss),
                   .factor = a.factor,
                   .add = a.dx.add});
  };
  if (kept && a.dx) dx_of(logits.all, 0);
  int64_t first = 0;
  do {  // once even for no rows: the gradient of an unused head is zero
    const int64_t rows = std::min(at_once, all - first);
    const Tensor gradients = logits.all.slice(0, kept ? first : 0, rows);
    if (!kept) {
      find_logits(exec, a.x, a.w, a.b, first, gradients);
      turn_into_gradients<R, L>(exec, a, gradients, first);
      if (a.dx) dx_of(gradients, first);
    }
    if (a.dw) {
      product(exec, {.a = transposed(rows_of(gradients, 0)),
                     .b = transposed(rows_of(a.x, first)),
                     .m = vocabulary,
                     .n = a.x.cols(),
                     .k = rows,
                     .out = View(a.dw.tensor),
                     .scale = View(a.dloss),
                     .factor = a.factor,
                     .add = a.dw.add || first > 0});
    }
    if (a.db) {
      GradView db(a.db);
      db.add = db.add || first > 0;
      const L* g = gradients.as<L>();
      const int64_t stride = gradients.stride(0);
      const R *dloss = a.dloss.as<R>(), factor = static_cast<R>(a.factor);
      sum_rows<R>(
          logits.sums, rows, vocabulary,
          [=] __device__(int64_t r, int64_t v) { return static_cast<R>(g[r * stride + v]); },
          [=] __device__(int64_t v, R s) { db.put(v, s * (*dloss * factor)); });
    }
    first += rows;
  } while (first < all);
}

// Calls f with the types of the losses and of the logits.
template <class F>
void in_types(const Tensor& losses, const Tensor& x, const Tensor& w, F&& f) {
  if (losses.dtype() == DType::f64) return f(double{}, double{});
  if (logit_type(losses, x, w) == DType::bf16) return f(float{}, __nv_bfloat16{});
  f(float{}, float{});
}

}  // namespace

void cross_entropy(const Exec& exec, const CrossEntropyArgs& a) noexcept {
  in_types(a.losses, a.x, a.w,
           [&](auto real, auto logit) { cross_entropy_as<decltype(real), decltype(logit)>(exec, a); });
}
void cross_entropy_backward(const Exec& exec, const CrossEntropyBackwardArgs& a) noexcept {
  in_types(a.lse, a.x, a.w,
           [&](auto real, auto logit) { cross_entropy_backward_as<decltype(real), decltype(logit)>(exec, a); });
}

}  // namespace qkv::kernels::cuda

// y = x w^T + b with its epilogue, and its gradients.
#include "kernels/cuda/blocks.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/product_skinny.h"

namespace qkv::kernels::cuda {
namespace {

using Grouped = ProductArgs::Grouped;

Operand operand(const Tensor& t, bool transposed) {
  const int last = t.rank() - 1;
  Operand o{.data = t.data(), .dtype = t.dtype(), .row = t.stride(last - 1), .k = 1};
  if (transposed) std::swap(o.row, o.k);
  if (t.rank() == 3) o.group = t.stride(0);
  return o;
}

void set_groups(ProductArgs& p, const Tensor& groups, Grouped how) {
  if (!groups.defined()) return;
  p.groups = groups.as<int32_t>();
  p.group_count = groups.count() - 1;
  p.grouped = how;
}

// Gradients of the bias: rows of each group in order.
template <class R>
void bias_gradient(const Exec& exec, const LinearBackwardArgs& a) {
  const GradView db(a.db);
  const View dy(a.dy);
  const int64_t outputs = a.dy.cols();
  if (!a.groups.defined()) {
    return sum_rows<R>(
        exec, a.dy.rows(), outputs, [=] __device__(int64_t r, int64_t o) { return dy.get<R>(dy.row(r) + o); },
        [=] __device__(int64_t o, R s) { db.put(o, s); });
  }
  const auto* groups = a.groups.as<int32_t>();
  each_thread(exec, (a.groups.count() - 1) * outputs, [=] __device__(int64_t i) {
    const int64_t g = i / outputs, o = i % outputs;
    R total = 0;
    for (int64_t r = groups[g]; r < groups[g + 1]; ++r) total += dy.get<R>(dy.row(r) + o);
    db.put((db.view.rank == 2 ? db.view.at(g) : 0) + o, total);
  });
}

void weight_gradient(const Exec& exec, const LinearBackwardArgs& a) {
  ProductArgs p{.a = operand(a.dy, true),
                .b = operand(a.x, true),
                .m = a.dy.cols(),
                .n = a.x.cols(),
                .k = a.dy.rows(),
                .out = View(a.dw.tensor),
                .add = a.dw.add};
  set_groups(p, a.groups, Grouped::inner);
  p.out_group = a.dw.tensor.rank() == 3 ? a.dw.tensor.stride(0) : 0;
  product(exec, p);
}

void input_gradient(const Exec& exec, const LinearBackwardArgs& a, const Grad& dx) {
  ProductArgs p{.a = operand(a.dy, false),
                .b = operand(a.w, true),
                .m = a.dy.rows(),
                .n = a.x.cols(),
                .k = a.dy.cols(),
                .out = View(dx.tensor),
                .add = dx.add};
  set_groups(p, a.groups, Grouped::rows);
  product(exec, p);
}

}  // namespace

void linear(const Exec& exec, const LinearArgs& a) noexcept {
  if (products_of_few_rows(exec, {&a, 1})) return;
  const Epilogue& f = a.epilogue;
  const Tensor& sums = f.pre.defined() ? f.pre : a.y;  // rounded there, before the activation
  if (a.w.format().plain()) {
    ProductArgs p{.a = operand(a.x, false),
                  .b = operand(a.w, false),
                  .m = a.y.rows(),
                  .n = a.y.cols(),
                  .k = a.x.cols(),
                  .out = View(sums),
                  .bias = View(a.b),
                  .residual = View(f.residual)};
    set_groups(p, a.groups, Grouped::rows);
    product(exec, p);
  } else {
    product_blocks(exec, a, sums);
  }
  if (f.residual.defined()) return;
  if (f.gate.defined()) return gated(exec, {.y = a.y, .gate = f.gate, .up = sums, .form = f.form});
  if (f.pre.defined() || f.form.act.kind != Activation::Kind::identity) {
    activation(exec, {.y = a.y, .x = sums, .act = f.form.act});
  }
}

void linear_set(const Exec& exec, std::span<const LinearArgs> all) noexcept {
  if (products_of_few_rows(exec, all)) return;
  for (const LinearArgs& one : all) linear(exec, one);
}

void linear_backward(const Exec& exec, const LinearBackwardArgs& a) noexcept {
  if (a.dw) weight_gradient(exec, a);
  if (a.db) in_real(a.db.tensor, [&](auto r) { bias_gradient<decltype(r)>(exec, a); });
  const InputActivation& in = a.input_act;
  if (!in.pre.defined()) {
    if (a.dx) input_gradient(exec, a, a.dx);
    return;
  }
  // dx passes through scratch, some rows at a time, rounded as if it had been stored. Rows are independent.
  const int64_t row_bytes = a.x.cols() * size_of(a.x.dtype());
  const int64_t rows = a.groups.defined() ? a.x.rows() : std::min(a.x.rows(), exec.scratch.count() / row_bytes);
  for (int64_t first = 0; first < a.x.rows(); first += rows) {
    const int64_t some = std::min(rows, a.x.rows() - first);
    LinearBackwardArgs part = a;
    part.dy = a.dy.slice(0, first, some);
    part.x = a.x.slice(0, first, some);
    const Tensor dx(a.x.device(), exec.scratch.data(), Format(a.x.dtype()), {some, a.x.cols()});
    input_gradient(exec, part, {dx});
    const auto cut = [&](const Tensor& t) { return t.defined() ? t.slice(0, first, some) : t; };
    const Grad dpre{cut(in.dpre.tensor), in.dpre.add}, dgate{cut(in.dgate.tensor), in.dgate.add};
    if (in.gate.defined()) {
      gated_backward(exec,
                     {.dgate = dgate, .dup = dpre, .dy = dx, .gate = cut(in.gate), .up = cut(in.pre), .form = in.form});
    } else {
      activation_backward(exec, {.dx = dpre, .dy = dx, .x = cut(in.pre), .act = in.form.act});
    }
  }
}

}  // namespace qkv::kernels::cuda

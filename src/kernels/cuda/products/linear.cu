// y = x w^T + b with its epilogue, and its gradients.
#include <vector>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/blocks.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/products/product_skinny.h"
#include "kernels/cuda/products/weight_gradients.h"

namespace qkv::kernels::cuda {
namespace {

using Grouped = ProductArgs::Grouped;

ProductArgs input_product(const LinearBackwardArgs& a, const Grad& dx) {
  ProductArgs p{.a = operand(a.dy, false),
                .b = operand(a.w, true),
                .m = a.dy.rows(),
                .n = a.x.cols(),
                .k = a.dy.cols(),
                .out = View(dx.tensor),
                .add = dx.add};
  set_groups(p, a.groups, Grouped::rows);
  return p;
}

ProductArgs output_product(const LinearArgs& a, const Tensor& sums) {
  return {.a = operand(a.x, false),
          .b = operand(a.w, false),
          .m = a.y.rows(),
          .n = a.y.cols(),
          .k = a.x.cols(),
          .out = View(sums),
          .bias = View(a.b)};
}

// Plain products of one x in one launch, where it can be.
bool side_by_side(const Exec& exec, std::span<const LinearArgs> all) {
  const bool takes =
      all.size() > 1 && all.size() <= kMostInSet && std::all_of(all.begin(), all.end(), [](const LinearArgs& a) {
        const Epilogue& f = a.epilogue;
        return a.w.format().plain() && !a.groups.defined() && !f.gate.defined() && !f.pre.defined() &&
               !f.residual.defined() && f.form.act.kind == Activation::Kind::identity;
      });
  if (!takes) return false;
  const ProductArgs first = output_product(all.front(), all.front().y);
  std::vector<Beside> beside;
  for (const LinearArgs& a : all.subspan(1)) {
    beside.push_back({first.a, operand(a.w, false), a.y.cols(), View(a.y), View(a.b)});
  }
  return product_of_many_rows(exec, first, beside);
}

// Straight to the gradients of the activation's inputs, where the product can.
bool through_activation(const Exec& exec, const LinearBackwardArgs& a) {
  const InputActivation& in = a.input_act;
  if (!in.dpre || in.dpre.add || in.dgate.add || a.x.dtype() != DType::bf16) return false;
  ProductArgs p = input_product(a, in.dpre);
  p.fused = {.kind = Fused::Kind::backward,
             .form = in.form,
             .gate = View(in.gate),
             .pre = View(in.pre),
             .dgate = View(in.dgate.tensor)};
  return product_of_many_rows(exec, p);
}

// Sums that are dropped before they join the residual: what is kept is found first, for those who go back through it too.
// In one launch where the product can, else through scratch, some rows at a time. Rows are independent.
void linear_and_dropout(const Exec& exec, const LinearArgs& a) {
  const Epilogue& f = a.epilogue;
  const Drop drop(f.dropout);
  const int64_t words = f.kept.dim(1);
  each_thread(exec, f.kept.count(), [=, bits = f.kept.as<uint32_t>()] __device__(int64_t i) {
    bits[i] = drop.bits(i / words, static_cast<uint64_t>(i % words));
  });
  if (a.w.format().plain() && !a.groups.defined()) {
    ProductArgs p = output_product(a, a.y);
    p.residual = View(f.residual);
    p.kept = Kept(f.kept, f.dropout);
    if (product_of_many_rows(exec, p)) return;
  }
  const int64_t row_bytes = a.y.cols() * size_of(a.y.dtype());
  const int64_t rows = a.groups.defined() ? a.y.rows() : std::min(a.y.rows(), exec.scratch.count() / row_bytes);
  for (int64_t first = 0; first < a.y.rows(); first += rows) {
    const auto cut = [&](const Tensor& t) { return t.slice(0, first, std::min(rows, a.y.rows() - first)); };
    LinearArgs part = a;
    part.epilogue = {};
    part.x = cut(a.x);
    part.y = Tensor(a.y.device(), exec.scratch.data(), a.y.format(), cut(a.y).shape());
    linear(exec, part);
    Dropout of_part = f.dropout;
    of_part.first_row += static_cast<uint64_t>(first);
    dropout(exec, {.y = cut(a.y), .x = part.y, .residual = cut(f.residual), .dropout = of_part});
  }
}

}  // namespace

void linear(const Exec& exec, const LinearArgs& a) noexcept {
  const Epilogue& f = a.epilogue;
  if (f.dropout.p > 0) return linear_and_dropout(exec, a);
  if (products_of_few_rows(exec, {&a, 1})) return;
  const Tensor& sums = f.pre.defined() ? f.pre : a.y;  // rounded there, before the activation
  if (a.w.format().plain()) {
    ProductArgs p = output_product(a, sums);
    p.residual = View(f.residual);
    set_groups(p, a.groups, Grouped::rows);
    if (f.gate.defined() || f.pre.defined() || f.form.act.kind != Activation::Kind::identity) {
      ProductArgs fused = p;
      fused.out = View(a.y);
      fused.fused = {.kind = Fused::Kind::forward, .form = f.form, .gate = View(f.gate), .pre = View(f.pre)};
      if (product_of_many_rows(exec, fused)) return;
    }
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
  if (products_of_few_rows(exec, all) || side_by_side(exec, all)) return;
  for (const LinearArgs& one : all) linear(exec, one);
}

bool linear_backward_set(const Exec& exec, const Grad& dx, std::span<const LinearBackwardArgs> all) noexcept {
  const bool takes = !all.empty() && all.size() <= kMostInSet && (!dx || dx.tensor.dtype() != DType::f64) &&
                     std::all_of(all.begin(), all.end(), [](const LinearBackwardArgs& a) {
                       return a.dy.dtype() == DType::bf16 && a.w.dtype() == DType::bf16 && !a.groups.defined();
                     });
  if (!takes) return false;
  weight_gradients(exec, all);
  if (!dx) return true;
  ProductArgs p = input_product(all.front(), dx);
  for (const LinearBackwardArgs& a : all.subspan(1)) {
    p.more[p.more_count++] = {.a = operand(a.dy, false), .b = operand(a.w, true), .k = a.dy.cols()};
  }
  product(exec, p);
  return true;
}

void linear_backward(const Exec& exec, const LinearBackwardArgs& a) noexcept {
  weight_gradients(exec, {&a, 1});
  const InputActivation& in = a.input_act;
  if (!in.pre.defined()) {
    if (a.dx) product(exec, input_product(a, a.dx));
    return;
  }
  if (through_activation(exec, a)) return;
  // dx passes through scratch, some rows at a time, rounded as if it had been stored. Rows are independent.
  const int64_t row_bytes = a.x.cols() * size_of(a.x.dtype());
  const int64_t rows = a.groups.defined() ? a.x.rows() : std::min(a.x.rows(), exec.scratch.count() / row_bytes);
  for (int64_t first = 0; first < a.x.rows(); first += rows) {
    const int64_t some = std::min(rows, a.x.rows() - first);
    LinearBackwardArgs part = a;
    part.dy = a.dy.slice(0, first, some);
    part.x = a.x.slice(0, first, some);
    const Tensor dx(a.x.device(), exec.scratch.data(), Format(a.x.dtype()), {some, a.x.cols()});
    product(exec, input_product(part, {dx}));
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

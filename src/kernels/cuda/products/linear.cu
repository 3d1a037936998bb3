// y = x w^T + b with its epilogue, and its gradients.
#include <algorithm>
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

// Sums that pass through scratch, some rows at a time: rows are independent.
class Slices {
 public:
  Exec exec;      // with what is left of scratch, for the product
  Tensor groups;  // of the slice, or absent

  Slices(const Exec& all, const Tensor& like, DType dtype, const Tensor& groups_of_all)
      : exec(all), groups(groups_of_all), of_all_(groups_of_all) {
    const int64_t room = exec.scratch.count(), left = room / 2 / 128 * 128,
                  starts = groups.defined() ? (4 * groups.count() + 127) / 128 * 128 : 0,
                  row_bytes = std::max<int64_t>(like.cols(), 1) * size_of(dtype);
    std::byte* const data = exec.scratch.data() + left;
    if (groups.defined()) groups = Tensor(like.device(), data, groups.format(), groups.shape());
    sums_ = Tensor(like.device(), data + starts, Format(dtype),
                   {std::min(like.rows(), (room - left - starts) / row_bytes), like.cols()});
    exec.scratch = exec.scratch.view({room}).slice(0, 0, left);
  }

  // f(first, count, sums): of rows [first, first + count).
  template <class F>
  void each(int64_t rows, const F& f) const {
    for (int64_t first = 0; first < rows; first += sums_.rows()) {
      const int64_t some = std::min(sums_.rows(), rows - first);
      if (groups.defined()) cut_groups(first, some);
      f(first, some, sums_.slice(0, 0, some));
    }
  }

  void cut_groups(int64_t first, int64_t some) const {
    each_thread(exec, groups.count(),
                [=, from = of_all_.as<int32_t>(), to = groups.as<int32_t>()] __device__(int64_t i) {
                  const int64_t at = from[i] - first;
                  to[i] = static_cast<int32_t>(at < 0 ? 0 : at > some ? some : at);
                });
  }

 private:
  Tensor sums_, of_all_;
};

// Sums that are dropped before they join the residual: what is kept is found first, for those who go back through it too.
// In one launch where the product can, else through scratch.
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
  // Not rounded before they join, as there.
  const Slices slices(exec, a.y, a.y.dtype() == DType::f64 ? DType::f64 : DType::f32, a.groups);
  slices.each(a.y.rows(), [&](int64_t first, int64_t some, const Tensor& sums) {
    LinearArgs part = a;
    part.epilogue = {};
    part.groups = slices.groups;
    part.x = a.x.slice(0, first, some);
    part.y = sums;
    linear(slices.exec, part);
    Dropout of_part = f.dropout;
    of_part.first_row += static_cast<uint64_t>(first);
    dropout(
        exec,
        {.y = a.y.slice(0, first, some), .x = sums, .residual = f.residual.slice(0, first, some), .dropout = of_part});
  });
}

// What follows the sums, in a launch of its own.
void finish_apart(const Exec& exec, const LinearArgs& a) {
  const Epilogue& f = a.epilogue;
  if (f.residual.defined()) return;
  if (f.gate.defined()) return gated(exec, {.y = a.y, .gate = f.gate, .up = sums_of(a), .form = f.form});
  if (f.pre.defined() || f.form.act.kind != Activation::Kind::identity) {
    activation(exec, {.y = a.y, .x = sums_of(a), .act = f.form.act});
  }
}

bool blocks_side_by_side(const Exec& exec, std::span<const LinearArgs> all) {
  const bool takes = std::all_of(all.begin(), all.end(), [](const LinearArgs& a) {
    return !a.w.format().plain() && !a.groups.defined() && a.epilogue.dropout.p == 0 && a.y.count() > 0;
  });
  if (!takes) return false;
  product_blocks(exec, all);
  for (const LinearArgs& a : all) finish_apart(exec, a);
  return true;
}

}  // namespace

void linear(const Exec& exec, const LinearArgs& a) noexcept {
  const Epilogue& f = a.epilogue;
  if (a.y.count() == 0) return;
  if (f.dropout.p > 0) return linear_and_dropout(exec, a);
  if (products_of_few_rows(exec, {&a, 1})) return;
  if (a.w.format().plain()) {
    ProductArgs p = output_product(a, sums_of(a));
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
    product_blocks(exec, {&a, 1});
  }
  finish_apart(exec, a);
}

void linear_set(const Exec& exec, std::span<const LinearArgs> all) noexcept {
  if (products_of_few_rows(exec, all) || side_by_side(exec, all) || blocks_side_by_side(exec, all)) return;
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
  if (a.x.count() == 0) return;
  const Slices slices(exec, a.x, a.x.dtype(), a.groups);  // dx, rounded as if it had been stored
  slices.each(a.x.rows(), [&](int64_t first, int64_t some, const Tensor& dx) {
    LinearBackwardArgs part = a;
    part.groups = slices.groups;
    part.dy = a.dy.slice(0, first, some);
    part.x = a.x.slice(0, first, some);
    product(slices.exec, input_product(part, {dx}));
    const auto cut = [&](const Tensor& t) { return t.defined() ? t.slice(0, first, some) : t; };
    const Grad dpre{cut(in.dpre.tensor), in.dpre.add}, dgate{cut(in.dgate.tensor), in.dgate.add};
    if (in.gate.defined()) {
      gated_backward(exec,
                     {.dgate = dgate, .dup = dpre, .dy = dx, .gate = cut(in.gate), .up = cut(in.pre), .form = in.form});
    } else {
      activation_backward(exec, {.dx = dpre, .dy = dx, .x = cut(in.pre), .act = in.form.act});
    }
  });
}

}  // namespace qkv::kernels::cuda

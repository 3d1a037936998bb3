// src/ops/linear.cpp
//
//   y  = x w^T + b        x [..., K], w [O, K], b [O]
//   dx = dy w     dw = dy^T x     db = sum over rows of dy
//
// With a residual, y = residual + (x w^T + b), dresidual = dy; with dropout, residual + dropout(x w^T + b), and the gradients
// are those of dropout(dy).
// Where w is in blocks (q8, q4, GGUF), x is rounded to int8 (docs/kernels.md) and there is no backward.
//
// With w [E, O, K] each row uses one of E weights: rows come sorted, groups[e] is the first row of weight e. A batched
// product, x [B, M, K] and w [B, O, K], is the same with groups of M rows each.
#include "ops/checks.h"
#include "ops/product.h"

namespace qkv::ops {
namespace {

// The groups of a grouped or batched product; undefined for a plain one.
RowGroups find_groups(Context& cx, const char* op, const Tensor& x, const Param& w, const RowGroups& given) {
  if (w.shape().rank() == 2) {
    QKV_CHECK(!given.defined(), op, ": ", given.count(), " groups were given but the weight '", w.name(), "' is ",
              w.shape(), Hint("a grouped product needs a weight [E, O, K]"));
    return {};
  }
  const int64_t count = w.shape()[0];
  if (given.defined()) {
    QKV_CHECK(given.count() == count && given.rows() == x.rows(), op, ": x is ", x, " and the weight '", w.name(),
              "' is ", w.shape(), " but the groups are ", given.count(), " of ", given.rows(), " rows in all",
              Hint("groups, rows and weights must come from the same routing"));
    return given;
  }
  QKV_CHECK(x.rank() == 3 && x.dim(0) == count, op, ": x is ", x, " but the weight '", w.name(), "' is ", w.shape(),
            Hint("a batched product needs x [B, M, K] with the weight's B, a grouped one needs groups"));
  return RowGroups::of_sizes(cx, std::vector<int32_t>(static_cast<size_t>(count), static_cast<int32_t>(x.dim(1))));
}

Tensor as_matrix(const Tensor& t) {
  return t.defined() ? t.flatten_to(2) : t;
}

}  // namespace

RowGroups RowGroups::of_sizes(Context& cx, std::span<const int32_t> sizes) {
  std::vector<int32_t> starts{0};
  for (const int32_t size : sizes) {
    QKV_CHECK(size >= 0 && size <= INT32_MAX - starts.back(), "linear: a group of ", size, " rows after ",
              starts.back(), Hint("sizes are 0 or more and add up to less than 2^31"));
    starts.push_back(starts.back() + size);
  }
  return {cx.upload(starts), starts.back()};
}

void check_residual(Context& cx, const char* op, const Residual& residual, const Shape& result) {
  check_vectors(cx, op, "residual", residual.x);
  QKV_CHECK(residual.x.shape() == result, op, ": residual is ", residual.x, " but the result added to it is ", result,
            Hint("the shapes must be equal; nothing is broadcast"));
  QKV_CHECK(!residual.in_place || cx.tape == nullptr, op, ": a sum cannot overwrite its residual ", residual.x,
            " under a tape", Hint("backward may need what is there: add without in_place"));
}

Tensor kept_of(Context& cx, const Residual& residual, const Tensor& y) {
  return residual.dropout.p > 0 ? cx.constant(kept_shape(y.rows(), y.cols()), DType::i32) : Tensor();
}

Product::Product(Context& cx, const char* op, const Tensor& x, const Of& of) : affine_(of.affine) {
  const Param& w = *affine_.weight;
  const int rank = w.shape().rank();
  QKV_CHECK(rank == 2 || rank == 3, op, ": the weight '", w.name(), "' is ", w.shape(),
            " but must be [O, K] or [E, O, K]", Hint("x is ", x));
  check_any_weight(cx, op, w, w.shape().with(-1, x.cols()), x);
  QKV_CHECK(cx.tape == nullptr || w.format().plain(), op, ": the weight '", w.name(), "' is ", w.format(),
            " and nothing goes backward through it to x ", x, Hint("load the model in f32 or bf16 to train it"));
  if (affine_.bias != nullptr) {
    const int64_t outputs = w.shape()[-2];
    check_weight(cx, op, *affine_.bias, rank == 2 ? Shape{outputs} : Shape{w.shape()[0], outputs}, x);
  }
  groups_ = find_groups(cx, op, x, w, of.groups).starts();
  if (of.dtype == DType::bf16) tiles_ = w.tiles(cx);
  weight_ = tiles_.defined() && cx.tape == nullptr ? w.shape_only(of.dtype) : w.value(cx, of.dtype);
  if (affine_.bias != nullptr) bias_ = affine_.bias->value(cx, of.dtype);
}

LinearArgs Product::arguments(const Tensor& y, const Tensor& x, const Epilogue& epilogue) const {
  return {.y = as_matrix(y),
          .x = as_matrix(x),
          .w = weight_,
          .tiles = tiles_,
          .b = bias_,
          .groups = groups_,
          .epilogue = {.form = epilogue.form,
                       .gate = as_matrix(epilogue.gate),
                       .pre = as_matrix(epilogue.pre),
                       .residual = as_matrix(epilogue.residual),
                       .dropout = epilogue.dropout,
                       .kept = epilogue.kept}};
}

void Product::forward(Context& cx, const Tensor& y, const Tensor& x, const Epilogue& epilogue) const {
  QKV_ASSERT(epilogue.dropout.p == 0 || (cx.kernels.drops_sums && epilogue.residual.defined()), "the table ",
             cx.kernels.name, " drops no sums");
  cx.kernels.linear(cx.exec, arguments(y, x, epilogue));
}

void forward_set(Context& cx, std::span<const LinearArgs> all) {
  if (cx.kernels.linear_set != nullptr) return cx.kernels.linear_set(cx.exec, all);
  for (const LinearArgs& one : all) cx.kernels.linear(cx.exec, one);
}

LinearBackwardArgs Product::gradients(Backward& bk, const Tensor& dy, const Tensor& x) const {
  LinearBackwardArgs args{.dw = bk.grad(*affine_.weight),
                          .db = affine_.bias != nullptr ? bk.grad(*affine_.bias) : Grad{},
                          .dy = as_matrix(dy),
                          .x = as_matrix(x),
                          .w = weight_,
                          .groups = groups_};
  // Both operands of a product have one dtype: dy of the residual stream is rounded first.
  if (dy.dtype() != weight_.dtype() && x.dtype() == weight_.dtype()) {
    args.dy = bk.make(args.dy.shape(), weight_.dtype());
    bk.kernels.copy(bk.exec, {.y = args.dy, .x = as_matrix(dy)});
  }
  return args;
}

void Product::backward(Backward& bk, const Tensor& dy, const Tensor& x, Grad dx) const {
  LinearBackwardArgs args = gradients(bk, dy, x);
  args.dx = {as_matrix(dx.tensor), dx.add};
  bk.kernels.linear_backward(bk.exec, args);
}

void Product::backward(Backward& bk, std::span<const Product> all, std::span<const Tensor> y, const Tensor& x) {
  std::vector<LinearBackwardArgs> args;
  for (size_t i = all.size(); i-- > 0;) args.push_back(all[i].gradients(bk, bk.dy(y[i]), x));
  Grad dx = bk.grad(x);
  dx.tensor = as_matrix(dx.tensor);
  if (bk.kernels.linear_backward_set(bk.exec, dx, args)) return;
  for (size_t i = 0; i < args.size(); ++i) {
    if (dx) args[i].dx = {dx.tensor, dx.add || i > 0};
    bk.kernels.linear_backward(bk.exec, args[i]);
  }
}

void Product::backward(Backward& bk, const Tensor& dy, const Tensor& x, const InputActivation& input) const {
  LinearBackwardArgs args = gradients(bk, dy, x);
  args.input_act = input;
  for (Tensor* t :
       {&args.input_act.pre, &args.input_act.gate, &args.input_act.dpre.tensor, &args.input_act.dgate.tensor}) {
    *t = as_matrix(*t);
  }
  bk.kernels.linear_backward(bk.exec, args);
}

Tensor linear(Context& cx, const Tensor& x, const Param& w, const LinearOptions& options) {
  check_vectors(cx, "linear", "x", x);
  QKV_CHECK(x.rank() >= 2, "linear: x is ", x, " but must be [..., ", x.cols(), "]", Hint("view one row as [1, K]"));
  const DType dtype = options.dtype.value_or(cx.precision.compute);
  const DType out = options.out.value_or(dtype);
  QKV_CHECK(is_float(dtype) && is_float(out), "linear: x is ", x, " and cannot give an output of ", dtype,
            Hint("ask for f32 or bf16"));
  const Residual residual = options.residual;
  const Product product(cx, "linear", x, {{&w, options.bias}, options.groups, dtype});
  const Shape shape = x.shape().with(-1, product.outputs());
  if (residual.x.defined() || residual.in_place) check_residual(cx, "linear", residual, shape);

  const Tensor y = residual.in_place ? residual.x : cx.make(shape, residual.x.defined() ? residual.x.dtype() : out);
  const Tensor kept = kept_of(cx, residual, y);
  product.forward(cx, y, x, {.residual = residual.x, .dropout = residual.dropout, .kept = kept});
  if (cx.tape != nullptr) {
    cx.tape->record("linear", [=](Backward& bk) {
      const Tensor dy = bk.dy(y, dtype, residual.dropout);
      bk.pass_on(y, residual.x);
      product.backward(bk, dy, x, bk.grad(x));
    });
    cx.tape->reads_rounded(y, dtype, {residual.dropout, kept});
  }
  return cx.finish("linear", y);
}

std::vector<Tensor> linear_set(Context& cx, const Tensor& x, std::span<const Affine> weights) {
  std::vector<Tensor> made;
  const bool at_once =
      cx.tape == nullptr ? cx.kernels.linear_set != nullptr : cx.kernels.linear_backward_set != nullptr;
  if (!at_once || cx.guard_finite || weights.size() > kMostInSet) {
    for (const Affine& one : weights) made.push_back(linear(cx, x, *one.weight, {.bias = one.bias}));
    return made;
  }
  check_vectors(cx, "linear", "x", x);
  std::vector<Product> products;
  std::vector<LinearArgs> all;
  for (const Affine& one : weights) {
    const Product& product = products.emplace_back(cx, "linear", x, Product::Of{one, {}, cx.precision.compute});
    made.push_back(cx.make(x.shape().with(-1, product.outputs()), cx.precision.compute));
    all.push_back(product.arguments(made.back(), x, {}));
  }
  forward_set(cx, all);
  if (cx.tape != nullptr) {
    cx.tape->record("linear", [=](Backward& bk) { Product::backward(bk, products, made, x); });
  }
  return made;
}

}  // namespace qkv::ops

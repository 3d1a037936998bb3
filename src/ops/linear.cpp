// src/ops/linear.cpp
//
//   y  = x w^T + b        x [..., K], w [O, K], b [O]
//   dx = dy w     dw = dy^T x     db = sum over rows of dy
//
// Where w is of blocks (q8, q4, GGUF) x is rounded to bytes on the way, docs/kernels.md; there is no backward then.
//
// With w [E, O, K] each row uses one of E weights: rows come sorted, groups[e] is the first row of weight e. A batched
// product, x [B, M, K] and w [B, O, K], is the same with groups of M rows each.
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {
namespace {

Shape output_shape(const Tensor& x, int64_t outputs) {
  return x.shape().with(-1, outputs);
}

// The groups of a grouped or batched product; undefined for a plain one.
RowGroups find_groups(Context& cx, const Tensor& x, const Param& w, const RowGroups& given) {
  if (w.shape().rank() == 2) {
    QKV_CHECK(!given.defined(), "linear: ", given.count(), " groups were given but the weight '", w.name(), "' is ",
              w.shape(), Hint("a grouped product needs a weight [E, O, K]"));
    return {};
  }
  const int64_t count = w.shape()[0];
  if (given.defined()) {
    QKV_CHECK(given.count() == count && given.rows() == x.rows(), "linear: x is ", x, " and the weight '", w.name(),
              "' is ", w.shape(), " but the groups are ", given.count(), " of ", given.rows(), " rows in all",
              Hint("groups, rows and weights must come from the same routing"));
    return given;
  }
  QKV_CHECK(x.rank() == 3 && x.dim(0) == count, "linear: x is ", x, " but the weight '", w.name(), "' is ", w.shape(),
            Hint("a batched product needs x [B, M, K] with the weight's B, a grouped one needs groups"));
  return RowGroups::of_sizes(cx, std::vector<int32_t>(static_cast<size_t>(count), static_cast<int32_t>(x.dim(1))));
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

Tensor linear(Context& cx, const Tensor& x, const Param& w, const LinearOptions& options) {
  check_vectors(cx, "linear", "x", x);
  QKV_CHECK(x.rank() >= 2, "linear: x is ", x, " but must be [..., ", x.cols(), "]", Hint("view one row as [1, K]"));
  const DType dtype = options.dtype.value_or(cx.precision.compute);
  const DType out = options.out.value_or(dtype);
  QKV_CHECK(is_float(dtype) && is_float(out), "linear: x is ", x, " and cannot give an output of ", dtype,
            Hint("ask for f32 or bf16"));
  const int rank = w.shape().rank();
  QKV_CHECK(rank == 2 || rank == 3, "linear: the weight '", w.name(), "' is ", w.shape(),
            " but must be [O, K] or [E, O, K]", Hint("x is ", x));
  const int64_t outputs = w.shape()[-2], inner = x.cols();
  check_any_weight(cx, "linear", w, w.shape().with(-1, inner), x);
  QKV_CHECK(cx.tape == nullptr || w.format().plain(), "linear: the weight '", w.name(), "' is ", w.format(),
            " and nothing goes backward through it to x ", x, Hint("load the model in f32 or bf16 to train it"));
  const Param* bias = options.bias;
  if (bias != nullptr) {
    check_weight(cx, "linear", *bias, rank == 2 ? Shape{outputs} : Shape{w.shape()[0], outputs}, x);
  }
  const RowGroups groups = find_groups(cx, x, w, options.groups);

  const Tensor y = cx.make(output_shape(x, outputs), out);
  const bool on_tiles = dtype == DType::bf16 && (out == DType::bf16 || out == DType::f32);
  const Tensor tiles = on_tiles ? w.tiles(cx) : Tensor();
  const Tensor weight = tiles.defined() && cx.tape == nullptr ? w.shape_only(dtype) : w.value(cx, dtype);
  cx.kernels.linear(cx.exec, {.y = y.flatten_to(2),
                              .x = x.flatten_to(2),
                              .w = weight,
                              .tiles = tiles,
                              .b = bias != nullptr ? bias->value(cx, dtype) : Tensor(),
                              .groups = groups.starts()});
  if (cx.tape != nullptr) {
    cx.tape->record("linear", [=, &w](Backward& bk) {
      Grad dx = bk.grad(x);
      if (dx) dx.tensor = dx.tensor.flatten_to(2);
      // Operands of products are of one dtype: what comes down the residual stream is rounded on its way in.
      Tensor dy = bk.dy(y).flatten_to(2);
      if (dy.dtype() != dtype && x.dtype() == dtype) {
        const Tensor rounded = bk.make(dy.shape(), dtype);
        bk.kernels.copy(bk.exec, {.y = rounded, .x = dy});
        dy = rounded;
      }
      bk.kernels.linear_backward(bk.exec, {.dx = dx,
                                           .dw = bk.grad(w),
                                           .db = bias != nullptr ? bk.grad(*bias) : Grad{},
                                           .dy = dy,
                                           .x = x.flatten_to(2),
                                           .w = weight,
                                           .groups = groups.starts()});
    });
  }
  return cx.finish("linear", y);
}

}  // namespace qkv::ops

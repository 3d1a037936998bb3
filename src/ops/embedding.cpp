// src/ops/embedding.cpp
//
//   y[r] = sum over lookups of factor * table[ids[r]]
//   dtable[v] = sum over rows with ids[r] == v of factor * dy[r]
#include <vector>

#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

Tensor embedding(Context& cx, std::initializer_list<Lookup> lookups) {
  QKV_CHECK(lookups.size() > 0, "embedding: nothing to look up", Hint("give at least one table"));
  const auto shape_of = [](const Lookup& one) {
    return one.table != nullptr ? one.table->shape() : one.numbers.shape();
  };
  for (const Lookup& one : lookups) {
    QKV_CHECK((one.table != nullptr || one.numbers.defined()) && shape_of(one).rank() == 2,
              "embedding: a lookup with ids ", one.ids, " has no table [V, C]", Hint("give every lookup its table"));
  }
  const Lookup& first = *lookups.begin();
  const int64_t width = shape_of(first)[-1];
  for (const Lookup& one : lookups) {
    check_indices(cx, "embedding", "ids", one.ids);
    check_same_shape("embedding", "the first ids", first.ids, "ids", one.ids);
    if (one.table != nullptr) check_any_weight(cx, "embedding", *one.table, {one.table->shape()[0], width}, one.ids);
    QKV_CHECK(shape_of(one)[-1] == width, "embedding: the first table has ", width, " columns but another has ",
              shape_of(one)[-1], Hint("tables that are added have one width"));
    check_index_range(cx, "embedding", "ids", one.ids, shape_of(one)[0]);
    check_number("embedding", "factor", one.factor, -1e30, 1e30);
  }
  const Tensor y = cx.make({first.ids.count(), width}, cx.precision.exact);
  bool add = false;
  for (const Lookup& one : lookups) {
    const Tensor table = one.table != nullptr ? one.table->master(cx) : one.numbers;
    cx.kernels.embedding(cx.exec, {.y = y, .table = table, .ids = one.ids, .factor = one.factor, .add = add});
    add = true;
  }
  if (cx.tape != nullptr) {
    cx.tape->record("embedding", [y, all = std::vector<Lookup>(lookups)](Backward& bk) {
      for (const Lookup& one : all) {
        if (one.table == nullptr) continue;
        if (const Grad dtable = bk.grad(*one.table)) {
          bk.kernels.embedding_backward(bk.exec,
                                        {.dtable = dtable, .dy = bk.dy(y), .ids = one.ids, .factor = one.factor});
        }
      }
    });
  }
  return cx.finish("embedding", y);
}

Tensor gather_rows(Context& cx, const Tensor& x, const Tensor& rows) {
  check_vectors(cx, "gather_rows", "x", x);
  check_indices(cx, "gather_rows", "rows", rows);
  QKV_CHECK(cx.tape == nullptr && x.rank() == 2, "gather_rows: x is ", x, " and ", rows, " rows of it are wanted",
            cx.tape == nullptr ? "" : " under a tape", Hint("x is [N, C]; it carries no gradient"));
  check_index_range(cx, "gather_rows", "rows", rows, x.dim(0));
  const Tensor y = cx.make({rows.count(), x.cols()}, x.dtype());
  cx.kernels.dispatch(cx.exec, {.y = y, .x = x, .order = rows});
  return cx.finish("gather_rows", y);
}

void scatter_rows(Context& cx, const Tensor& cache, const Tensor& x, const Tensor& slots, const Tensor& scales) {
  constexpr const char* kOp = "scatter_rows";
  if (scales.defined()) {
    check_bytes(cx, kOp, "cache", cache, scales);
  } else {
    check_vectors(cx, kOp, "cache", cache);
  }
  check_vectors(cx, kOp, "x", x);
  check_indices(cx, kOp, "slots", slots);
  QKV_CHECK(cache.rank() == x.rank() && x.rank() >= 2 && cache.shape().with(0, x.dim(0)) == x.shape() &&
                slots.count() == x.dim(0),
            kOp, ": the cache is ", cache, " but x is ", x, " with slots ", slots,
            Hint("x must be rows of the cache, one slot each"));
  QKV_CHECK(cx.tape == nullptr, kOp, ": a cache ", cache, " carries no gradient, so x ", x,
            " cannot be written under a tape", Hint("train without a cache: pass k and v to attention directly"));
  check_index_range(cx, kOp, "slots", slots, cache.dim(0));
  cx.kernels.scatter_rows(cx.exec, {.y = cache, .x = x, .slots = slots, .scales = scales});
}

}  // namespace qkv::ops

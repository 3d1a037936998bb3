#include "ops/checks.h"

#include <cmath>

namespace qkv::ops {
namespace {

void check_device(Context& cx, const char* op, const char* name, const Tensor& t) {
  QKV_CHECK(t.defined(), op, ": ", name, " is missing", Hint("pass a tensor"));
  QKV_CHECK(&t.device() == cx.exec.device, op, ": ", name, " is on ", t.device().name(), " but the pass runs on ",
            cx.exec.device->name(), Hint("upload it first"));
}

}  // namespace

void check_floats(Context& cx, const char* op, const char* name, const Tensor& t) {
  check_device(cx, op, name, t);
  QKV_CHECK(t.format().plain() && is_float(t.dtype()), op, ": ", name, " is ", t, " but must be f64, f32, bf16 or f16",
            Hint("cast it, or pass indices where indices belong"));
}

void check_vectors(Context& cx, const char* op, const char* name, const Tensor& t) {
  check_floats(cx, op, name, t);
  QKV_CHECK(t.rank() >= 1, op, ": ", name, " is a single number but must have at least one axis",
            Hint("view it as [1, 1]"));
  QKV_CHECK(t.rows_contiguous(), op, ": the last axis of ", name, " ", t, " has stride ", t.stride(-1),
            " but must be contiguous", Hint("ops::cast makes a contiguous copy"));
}

void check_bytes(Context& cx, const char* op, const char* name, const Tensor& t, const Tensor& scales) {
  check_device(cx, op, name, t);
  check_device(cx, op, "scales", scales);
  QKV_CHECK(t.format().plain() && t.dtype() == DType::i8 && t.rank() >= 1 && t.rows_contiguous(), op, ": ", name,
            " is ", t, " and has scales ", scales, " but only rows of i8 have scales",
            Hint("numbers of a float dtype are stored without scales"));
  QKV_CHECK(scales.format().plain() && scales.dtype() == DType::f32 && scales.contiguous() &&
                scales.shape() == Shape(t.shape().dims().first(static_cast<size_t>(t.rank() - 1))),
            op, ": ", name, " is ", t, " but its scales are ", scales,
            Hint("one f32 for each row of bytes: [P, G] beside [P, G, D]"));
}

void check_indices(Context& cx, const char* op, const char* name, const Tensor& t) {
  check_device(cx, op, name, t);
  QKV_CHECK(t.format().plain() && t.dtype() == DType::i32, op, ": ", name, " is ", t, " but must be i32",
            Hint("indices are i32 everywhere"));
  QKV_CHECK(t.contiguous(), op, ": ", name, " ", t, " must be contiguous", Hint("upload it in one piece"));
}

void check_index_range(Context& cx, const char* op, const char* name, const Tensor& ids, int64_t limit,
                       int64_t allowed) {
  if (cx.recordable || cx.indices_checked) return;
  int64_t first = -1;
  cx.kernels.outside(cx.exec, {.ids = ids, .limit = limit, .allowed = allowed, .first = &first});
  if (first < 0) return;
  int32_t value = 0;
  ids.device().download(&value, ids.data() + first * size_of(DType::i32), size_of(DType::i32));
  QKV_FAIL(op, ": ", name, "[", first, "] is ", value, " but must be in [0, ", limit, ")",
           Hint("check the tokenizer or the index list against the size of the table"));
}

void check_same_shape(const char* op, const char* name_a, const Tensor& a, const char* name_b, const Tensor& b) {
  QKV_CHECK(a.shape() == b.shape(), op, ": ", name_a, " is ", a, " but ", name_b, " is ", b,
            Hint("the shapes must be equal; nothing is broadcast"));
}

void check_shape(const char* op, const char* name, const Tensor& t, const Shape& expected) {
  QKV_CHECK(t.shape() == expected, op, ": ", name, " is ", t, " but must be ", expected,
            Hint("the shapes must be equal; nothing is broadcast"));
}

void check_weight(Context& cx, const char* op, const Param& w, const Shape& expected, const Tensor& x) {
  check_any_weight(cx, op, w, expected, x);
  QKV_CHECK(w.format().plain(), op, ": the weight '", w.name(), "' is ", w.format(),
            " but must be f64, f32, bf16 or f16", Hint("dequantise it when loading"));
}

void check_any_weight(Context& cx, const char* op, const Param& w, const Shape& expected, const Tensor& x) {
  QKV_CHECK(w.shape() == expected, op, ": x is ", x, " but the weight '", w.name(), "' is ", w.shape(), " and must be ",
            expected, Hint("the weights belong to a model of another width"));
  QKV_CHECK(!w.format().plain() || is_float(w.format().dtype), op, ": the weight '", w.name(), "' is ", w.format(),
            " but must be of floats or of blocks", Hint("integers are indices, not weights"));
  QKV_CHECK(&w.device() == cx.exec.device, op, ": the weight '", w.name(), "' is on ", w.device().name(),
            " but the pass runs on ", cx.exec.device->name(), Hint("load the weight on the engine's device"));
}

void check_number(const char* op, const char* name, double value, double low, double high) {
  QKV_CHECK(std::isfinite(value) && value >= low && value <= high, op, ": ", name, " is ", value, " but must be in [",
            low, ", ", high, "]", Hint("a NaN here would spread to every number after it"));
}

}  // namespace qkv::ops

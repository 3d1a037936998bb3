// Argument checks of ops. Each throws an Error that names the op, the argument and what is required.
#pragma once

#include "base/error.h"
#include "core/context.h"

namespace qkv::ops {

// A plain float tensor on the pass' device.
void check_floats(Context& cx, const char* op, const char* name, const Tensor& t);
// The same, with at least one axis and contiguous rows.
void check_vectors(Context& cx, const char* op, const char* name, const Tensor& t);
// Rows of i8 and the f32 scale of each row: t [..., D] and scales [...], contiguous.
void check_bytes(Context& cx, const char* op, const char* name, const Tensor& t, const Tensor& scales);
// A contiguous i32 tensor on the pass' device.
void check_indices(Context& cx, const char* op, const char* name, const Tensor& t);
// Every index is in [0, limit), or equal to `allowed`.
void check_index_range(Context& cx, const char* op, const char* name, const Tensor& ids, int64_t limit,
                       int64_t allowed = kNoException);
void check_same_shape(const char* op, const char* name_a, const Tensor& a, const char* name_b, const Tensor& b);
void check_shape(const char* op, const char* name, const Tensor& t, const Shape& expected);
// A weight on the device with the shape that x requires: floats, or (any) also blocks.
void check_any_weight(Context& cx, const char* op, const Param& w, const Shape& expected, const Tensor& x);
void check_weight(Context& cx, const char* op, const Param& w, const Shape& expected, const Tensor& x);
// A finite number in [low, high].
void check_number(const char* op, const char* name, double value, double low, double high);

}  // namespace qkv::ops

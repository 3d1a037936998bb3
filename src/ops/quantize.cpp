// src/ops/quantize.cpp
//
//   q8  w = s q,  q in -127 .. 127,  s = max |x| / 127 over the group
//   q4  w = s q,  q in -8 .. 7,      s = x / -8 of the x that is furthest from 0
//
// s is bf16; q is x / s rounded to even. Layout: core/panels.h.
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {

void quantize(Context& cx, Param& w, const Tensor& x) {
  check_vectors(cx, "quantize", "x", x);
  QKV_CHECK(w.format().panels(), "quantize: the weight '", w.name(), "' is ", w.format(), " but must be q8 or q4",
            Hint("other block formats come from GGUF files"));
  check_any_weight(cx, "quantize", w, x.shape(), x);
  cx.check_finite("quantize", ("the weight '" + w.name() + "'").c_str(), x);
  cx.kernels.quantize(cx.exec, {.y = w.writable(cx), .x = x});
  w.updated();
}

Tensor dequantize(Context& cx, const Param& w, DType dtype) {
  QKV_CHECK(!w.format().plain(), "dequantize: the weight '", w.name(), "' is ", w.format(), " already",
            Hint("cast it instead"));
  QKV_CHECK(is_float(dtype), "dequantize: the weight '", w.name(), "' cannot become ", dtype,
            Hint("ask for f32 or bf16"));
  const Tensor y = cx.constant(w.shape(), dtype);
  check_any_weight(cx, "dequantize", w, y.shape(), y);
  cx.kernels.dequantize(cx.exec, {.y = y, .x = w.master(cx)});
  return cx.finish("dequantize", y);
}

}  // namespace qkv::ops

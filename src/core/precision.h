// Which dtype each part of a pass keeps. Chosen once per run.
#pragma once

#include "core/dtype.h"

namespace qkv {

struct Precision {
  DType compute = DType::f32;  // weights as multiplied, operands of products, saved activations
  DType exact = DType::f32;    // residual stream, norm statistics, LSE, router, loss, weight gradients, masters

  static Precision f64() { return {DType::f64, DType::f64}; }
  static Precision f32() { return {DType::f32, DType::f32}; }
  static Precision bf16() { return {DType::bf16, DType::f32}; }
};

}  // namespace qkv

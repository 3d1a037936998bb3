// One product with its weight: what linear and feed_forward are made of.
#pragma once

#include "ops/ops.h"

namespace qkv::ops {

// A residual that a result of this shape is added to.
void check_residual(Context& cx, const char* op, const Residual& residual, const Shape& result);

// x w^T + b as `op` has it: weight and bias checked against x, the rows of x in groups where each has its own weight.
class Product {
 public:
  struct Of {
    Affine affine;
    RowGroups groups;
    DType dtype = DType::f32;  // of the weight as it is multiplied
  };
  Product(Context& cx, const char* op, const Tensor& x, const Of& of);

  int64_t outputs() const { return weight_.dim(-2); }
  void forward(Context& cx, const Tensor& y, const Tensor& x, const Epilogue& epilogue) const;  // of y's rows
  // Gradients of weight and bias, and of x where dx is there.
  void backward(Backward& bk, const Tensor& dy, const Tensor& x, Grad dx) const;
  // The same, and of the activation's inputs x was computed from.
  void backward(Backward& bk, const Tensor& dy, const Tensor& x, const InputActivation& input) const;

 private:
  LinearBackwardArgs gradients(Backward& bk, const Tensor& dy, const Tensor& x) const;

  Affine affine_;
  Tensor weight_, tiles_, bias_, groups_;  // where tiles serve, the weight may be a shape alone
};

// dresidual = dy.
void residual_backward(Backward& bk, const Residual& residual, const Tensor& dy);

}  // namespace qkv::ops

// One product with its weight: the part that linear and feed_forward share.
#pragma once

#include "ops/ops.h"

namespace qkv::ops {

// An Error unless a result of this shape can be added to the residual.
void check_residual(Context& cx, const char* op, const Residual& residual, const Shape& result);

// Where a product that is dropped and added to it says what was kept: y [..., O].
Tensor kept_of(Context& cx, const Residual& residual, const Tensor& y);

// x w^T + b, checked for `op`; with groups, each group of rows has its own weight.
class Product {
 public:
  struct Of {
    Affine affine;
    RowGroups groups;
    DType dtype = DType::f32;  // of the weight in the product
  };
  Product(Context& cx, const char* op, const Tensor& x, const Of& of);

  int64_t outputs() const { return weight_.dim(-2); }
  void forward(Context& cx, const Tensor& y, const Tensor& x, const Epilogue& epilogue) const;  // of y's rows
  LinearArgs arguments(const Tensor& y, const Tensor& x, const Epilogue& epilogue) const;       // of the same
  // Gradients of weight and bias, and of x where dx is there.
  void backward(Backward& bk, const Tensor& dy, const Tensor& x, Grad dx) const;
  // The same of several with one x, the last first.
  static void backward(Backward& bk, std::span<const Product> all, std::span<const Tensor> y, const Tensor& x);
  // Of one, and of the activation's inputs x was computed from.
  void backward(Backward& bk, const Tensor& dy, const Tensor& x, const InputActivation& input) const;

 private:
  LinearBackwardArgs gradients(Backward& bk, const Tensor& dy, const Tensor& x) const;

  Affine affine_;
  Tensor weight_, tiles_, bias_, groups_;  // with tiles, the weight may be a shape without memory
};

// Products of one x: linear for each in order, in one launch where the kernels can.
void forward_set(Context& cx, std::span<const LinearArgs> all);

}  // namespace qkv::ops

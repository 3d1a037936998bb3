// A named weight: its master, its gradient, and the forms kernels want it in.
#pragma once

#include <string>

#include "core/kernels.h"

namespace qkv {

class Context;

class Param {
 public:
  Param(std::string name, Device& device, Format format, const Shape& shape);
  Param(std::string name, const Tensor& master);  // bytes that live elsewhere, as in a mapped file, and outlive this

  const std::string& name() const { return name_; }
  const Shape& shape() const { return master_.shape(); }
  Format format() const { return master_.format(); }
  Tensor master() const { return master_; }

  // The weight as a pass multiplies it: the master itself, or a copy in the pass' dtype made at first use and
  // made again after updated().
  Tensor value(Context& cx) const;
  Tensor value(Context& cx, DType dtype) const;

  // Whoever writes the master says so.
  void updated() { stale_ = true; }

  bool trainable = true;

  // The gradient belongs to the weight because it outlives a pass: micro-batches add to it until it is cleared.
  Grad use_gradient(DType exact) const;  // where the next contribution goes; undefined if not trainable
  Tensor gradient() const { return has_gradient_ ? gradient_ : Tensor(); }
  void clear_gradient() { has_gradient_ = false; }

 private:
  std::string name_;
  Storage master_storage_;
  Tensor master_;

  // Caches behind a const weight: a forward pass may make them, but never changes what the weight is.
  mutable Storage form_storage_, gradient_storage_;
  mutable Tensor form_, gradient_;
  mutable bool stale_ = false, has_gradient_ = false;
};

}  // namespace qkv

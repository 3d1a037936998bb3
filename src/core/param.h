// A named weight: its master, its gradient, and the forms kernels want it in.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/kernels.h"

namespace qkv {

class Context;

// Where a weight's numbers come from when it is not made empty.
struct ParamSource {
  // Bytes that lie somewhere already, a mapped file say: used in place and only read.
  std::byte* in_place = nullptr;
  std::shared_ptr<const void> owner;  // keeps them alive
  std::function<void()> release;      // called once a copy has taken their place: the pages can go back

  std::function<void(const Tensor& to)> fill;  // otherwise: writes the numbers, when they are first needed
};

class Param {
 public:
  Param(std::string name, Device& device, Format format, const Shape& shape);
  Param(std::string name, Device& device, Format format, const Shape& shape, ParamSource source);

  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  Format format() const { return format_; }
  Device& device() const { return *device_; }
  Tensor master() const;  // for reading

  // For passes. A plan sees shapes only: no weight need exist for it.
  Tensor master(Context& cx) const;
  Tensor writable(Context& cx);  // for changing; memory of its own if it was in place. Say updated() afterwards

  // The weight as a pass multiplies it: the master itself, or a copy in the pass' dtype made at first use and
  // made again after updated().
  Tensor value(Context& cx) const;
  Tensor value(Context& cx, DType dtype) const;

  // Its shape alone, for kernels that read its tiles.
  Tensor shape_only(DType dtype) const { return Tensor(*device_, nullptr, Format(dtype), shape_); }

  // The same as tiles where the pass' kernels want them, else undefined.
  Tensor tiles(Context& cx) const;

  // Gives the memory behind the master back where it can be had again from its source.
  void give_back() const;

  // Whoever changed the master says so.
  void updated() { stale_ = tiles_stale_ = true; }

  bool trainable = true;

  // The gradient belongs to the weight because it outlives a pass: micro-batches add to it until it is cleared.
  Grad use_gradient(DType exact) const;  // where the next contribution goes; undefined if not trainable
  Tensor gradient() const { return has_gradient_ ? gradient_ : Tensor(); }
  void clear_gradient() { has_gradient_ = false; }
  // The gradient with its memory, for sums that are not made in place; undefined if there is none.
  Storage take_gradient();
  void put_gradient(Storage gradient);

 private:
  void take_memory() const;

  std::string name_;
  Device* device_;
  Format format_;
  Shape shape_;

  // Caches behind a const weight: a forward pass may make them, but never changes what the weight is.
  mutable ParamSource source_;
  mutable Storage master_storage_, form_storage_, tiles_storage_, gradient_storage_;
  mutable Tensor master_, form_, tiles_, gradient_;
  mutable bool stale_ = false, tiles_stale_ = false, has_gradient_ = false;
};

}  // namespace qkv

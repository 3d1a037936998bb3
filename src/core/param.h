// A named weight: the master values, their gradient, and copies in the dtype or layout that kernels take.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/kernels.h"

namespace qkv {

class Context;

// Where the values of a weight come from.
struct ParamSource {
  // Bytes that exist already, as in a mapped file: used in place, read only.
  std::byte* in_place = nullptr;
  std::shared_ptr<const void> owner;  // keeps them alive
  std::function<void()> release;      // called once they have been copied: their pages can be dropped

  std::function<void(const Tensor& to)> fill;  // otherwise: writes the values at first use
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

  // For passes. While planning, a shape without memory.
  Tensor master(Context& cx) const;
  Tensor writable(Context& cx);  // copied first if it is used in place; call updated() after writing

  // The weight in the pass' dtype: the master itself, or a copy made at first use and again after updated().
  Tensor value(Context& cx) const;
  Tensor value(Context& cx, DType dtype) const;

  // A shape without memory, for kernels that read the tiles.
  Tensor shape_only(DType dtype) const { return Tensor(*device_, nullptr, Format(dtype), shape_); }

  // The weight as tiles (kernels.h) if the pass' kernels want them, else undefined.
  Tensor tiles(Context& cx) const;

  int64_t held_bytes() const;  // of the device, by the master and its copies; without the gradient

  // Frees the master's memory if its source can fill it again and no pass reads it.
  void release_master() const;

  // The copy that value() keeps, if there is one: who changes the master may change it along.
  Tensor copy() const { return converted_; }

  // To be called after the master was changed, alone or along with its copy.
  void updated(bool with_copy = false) {
    stale_ = !with_copy;
    tiles_stale_ = true;
    ++changes_;
  }
  static uint64_t changes() { return changes_; }  // of all weights, ever

  bool trainable = true;

  // The gradient lives in the weight, not on the tape: micro-batches add to it until it is cleared.
  Grad use_gradient(DType exact) const;  // where the next contribution goes; undefined if not trainable
  Tensor gradient() const { return has_gradient_ ? gradient_ : Tensor(); }
  void clear_gradient() { has_gradient_ = false; }
  // Moves the gradient's memory out, for sums that are not in place; undefined if there is none.
  Storage take_gradient();
  void put_gradient(Storage gradient);

 private:
  void allocate_master() const;
  void note_read(Context& cx) const;  // by a forward pass

  std::string name_;
  Device* device_;
  Format format_;
  Shape shape_;

  // Caches: a forward pass on a const weight may fill them.
  mutable ParamSource source_;
  mutable Storage master_storage_, converted_storage_, tiles_storage_, gradient_storage_;
  mutable Tensor master_, converted_, tiles_, gradient_;
  mutable bool stale_ = false, tiles_stale_ = false, has_gradient_ = false;
  mutable bool master_read_ = false;  // by passes, as it is
  inline static std::atomic<uint64_t> changes_{0};
};

}  // namespace qkv

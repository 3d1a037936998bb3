// A view of bytes on a device: shape, strides and format. Cheap to copy, owns nothing.
// Owners are Param, Arena, KvCache and Storage itself; a tensor must not outlive its owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>

#include "core/shape.h"
#include "core/storage.h"

namespace qkv {

class Tensor {
 public:
  Tensor() = default;  // undefined
  Tensor(Device& device, std::byte* data, Format format, const Shape& shape);
  explicit Tensor(const Storage& storage, const Shape& shape);

  bool defined() const { return device_ != nullptr; }
  explicit operator bool() const { return defined(); }

  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t stride(int axis) const {
    return strides_[axis < 0 ? static_cast<size_t>(axis + rank()) : static_cast<size_t>(axis)];
  }
  int64_t count() const { return shape_.count(); }
  int64_t cols() const { return shape_.rank() == 0 ? 1 : shape_[-1]; }  // elements of one row
  int64_t rows() const;                                                 // product of all but the last dimension
  bool contiguous() const;
  int64_t element_offset(int64_t i) const;  // of the i-th element in row-major order, in elements
  bool rows_contiguous() const { return rank() == 0 || stride(-1) == 1 || dim(-1) <= 1; }

  Format format() const { return format_; }
  DType dtype() const { return format_.dtype; }
  Device& device() const { return *device_; }
  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

  // Views. Each shares the bytes, and under a tape the gradient, of the tensor it came from.
  Tensor view(const Shape& shape) const;                       // contiguous tensors only
  Tensor slice(int axis, int64_t begin, int64_t count) const;  // [begin, begin + count) of one axis
  Tensor split_last(int64_t outer, int64_t inner) const;       // [..., outer * inner] -> [..., outer, inner]
  Tensor merge_last() const;                                   // [..., a, b] -> [..., a * b]
  Tensor flatten_to(int rank) const;                           // joins leading axes until `rank` are left
  Tensor transposed(int a, int b) const;
  Tensor expanded(int axis, int64_t count) const;  // repeats an axis of size 1, for reading only

  // The tape node of the value this is a view of; -1 without a tape.
  int32_t node() const { return node_; }
  Tensor with_node(int32_t node) const {
    Tensor t = *this;
    t.node_ = node;
    return t;
  }

  // The same view of other memory with the same layout: how the gradient of a view is found.
  Tensor rebased(const std::byte* from, std::byte* to) const;

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  Format format_;
  int32_t node_ = -1;
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_{};  // in elements
};

// For error texts:  f32 [2, 3]
std::ostream& operator<<(std::ostream& out, const Tensor& t);

}  // namespace qkv

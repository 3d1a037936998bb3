// Copies numbers between a weight and the tensors of a file.
#pragma once

#include <cstddef>
#include <span>

#include "model/checkpoint/tensor_names.h"

namespace qkv {

// A weight as matrices: E of [O, K]. Vectors have K = 1; only experts have E > 1.
struct MatrixDims {
  int64_t matrices = 1, outputs = 1, inputs = 1;
  int64_t count() const { return matrices * outputs * inputs; }
};
MatrixDims matrix_dims(const WeightSpec& weight);

// The layout of one part of a tensor.
class PartLayout {
 public:
  // `untransposed`: the file holds [O, K] although the layout says transposed (4-bit experts of gpt-oss).
  PartLayout(const NamedTensor& tensor, size_t part, const TensorNames& names, bool untransposed = false);

  const MatrixDims& dims() const { return dims_; }  // of the part: one expert of a weight has one matrix
  int64_t first() const { return first_; }          // where the part starts in its weight
  int64_t tensor_count() const { return dims_.matrices * outputs_ * dims_.inputs; }

  // The same in units of whole blocks along K. Only if the tensor is [O, K].
  PartLayout in_blocks(int64_t elements) const;

  // Offset of the part in the tensor if both have the same layout; -1 otherwise.
  int64_t contiguous_at() const;

  // `size` bytes per element. `part` is the part alone, `tensor` the whole tensor.
  void read(std::span<std::byte> part, std::span<const std::byte> tensor, int64_t size) const;
  void write(std::span<std::byte> tensor, std::span<const std::byte> part, int64_t size) const;

 private:
  template <class Copy>
  void walk(int64_t size, Copy copy) const;
  int64_t row(int64_t output) const;  // row of the tensor that holds this output

  MatrixDims dims_;
  NamedTensor::Layout layout_;
  int64_t first_ = 0;    // elements of the weight before this part
  int64_t outputs_ = 0;  // of all parts
  int64_t before_ = 0;   // outputs of the parts before this one
  int64_t parts_ = 1, part_ = 0;
  int64_t heads_ = 1;
  bool transposed_ = false;
};

}  // namespace qkv

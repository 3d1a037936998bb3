// Moves numbers between a weight and the tensors of a file that hold it.
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

// One part of a tensor of a file, and where its numbers lie there.
class PartLayout {
 public:
  // `unswapped`: the file holds [O, K] although the layout says swapped (gpt-oss keeps its 4-bit experts so).
  PartLayout(const NamedTensor& tensor, size_t part, const TensorNames& names, bool unswapped = false);

  const MatrixDims& dims() const { return dims_; }  // of the part: one expert of a weight has one matrix
  int64_t first() const { return first_; }          // where the part starts in its weight
  int64_t tensor_count() const { return dims_.matrices * outputs_ * dims_.inputs; }

  // The same with whole blocks along K for elements. Only where the tensor holds [O, K].
  PartLayout in_blocks(int64_t elements) const;

  // Where the part starts in the tensor, if its numbers lie there as they do in the weight; -1 otherwise.
  int64_t contiguous_at() const;

  // `size` bytes to an element. `part` is the part alone, `tensor` the whole tensor.
  void read(std::span<std::byte> part, std::span<const std::byte> tensor, int64_t size) const;
  void write(std::span<std::byte> tensor, std::span<const std::byte> part, int64_t size) const;

 private:
  template <class Copy>
  void walk(int64_t size, Copy copy) const;
  int64_t row(int64_t output) const;  // which of the tensor's outputs this one is

  MatrixDims dims_;
  NamedTensor::Layout layout_;
  int64_t first_ = 0;    // elements of the weight before this part
  int64_t outputs_ = 0;  // of all parts
  int64_t before_ = 0;   // outputs of the parts before this one
  int64_t parts_ = 1, part_ = 0;
  int64_t heads_ = 1;
  bool swapped_ = false;
};

}  // namespace qkv

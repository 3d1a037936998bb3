#include "model/checkpoint/tensor_layout.h"

#include <cstring>

#include "base/error.h"

namespace qkv {

MatrixDims matrix_dims(const WeightSpec& weight) {
  const Shape& s = weight.shape;
  const bool vectors = s.rank() == 1 || weight.name.ends_with(".bias");
  MatrixDims dims{.outputs = vectors ? s[-1] : s[-2], .inputs = vectors ? 1 : s[-1]};
  dims.matrices = s.count() / std::max<int64_t>(dims.outputs * dims.inputs, 1);
  return dims;
}

PartLayout::PartLayout(const NamedTensor& tensor, size_t part, const TensorNames& names, bool untransposed)
    : layout_(tensor.layout),
      parts_(static_cast<int64_t>(tensor.parts.size())),
      part_(static_cast<int64_t>(part)),
      heads_(tensor.heads) {
  using Layout = NamedTensor::Layout;
  for (size_t p = 0; p < tensor.parts.size(); ++p) {
    const MatrixDims dims = matrix_dims(names.weight(tensor.parts[p].weight));
    if (p == part) {
      dims_ = dims;
      before_ = outputs_;
    }
    outputs_ += dims.outputs;
  }
  if (tensor.parts[part].expert >= 0) {
    dims_.matrices = 1;
    first_ = tensor.parts[part].expert * dims_.outputs * dims_.inputs;
  }
  const bool matrix = dims_.inputs > 1;
  transposed_ = matrix && !untransposed && (layout_ == Layout::transposed || layout_ == Layout::interleaved);
}

PartLayout PartLayout::in_blocks(int64_t elements) const {
  QKV_ASSERT(!transposed_ && dims_.inputs % elements == 0, "rows of ", dims_.inputs, " are no blocks of ", elements);
  PartLayout blocks = *this;
  blocks.dims_.inputs /= elements;
  blocks.first_ /= elements;
  return blocks;
}

int64_t PartLayout::row(int64_t output) const {
  using Layout = NamedTensor::Layout;
  switch (layout_) {
    case Layout::plain:
    case Layout::transposed:
      return before_ + output;
    case Layout::interleaved:
      return output * parts_ + part_;
    case Layout::by_head: {
      const int64_t mine = dims_.outputs / heads_, head = output / mine;
      return head * (outputs_ / heads_) + before_ / heads_ + output % mine;
    }
    case Layout::rope_pairs: {
      const int64_t width = dims_.outputs / heads_, head = output / width, column = output % width, half = width / 2;
      return head * width + (column < half ? 2 * column : 2 * (column - half) + 1);
    }
  }
  return 0;
}

int64_t PartLayout::contiguous_at() const {
  if (layout_ != NamedTensor::Layout::plain || (dims_.matrices > 1 && parts_ > 1)) return -1;
  return before_ * dims_.inputs;
}

// Calls copy(offset in the part, offset in the tensor, bytes) for the longest contiguous runs.
template <class Copy>
void PartLayout::walk(int64_t size, Copy copy) const {
  for (int64_t m = 0; m < dims_.matrices; ++m) {
    const int64_t part_matrix = m * dims_.outputs * dims_.inputs, tensor_matrix = m * outputs_ * dims_.inputs;
    if (!transposed_) {
      for (int64_t o = 0; o < dims_.outputs; ++o) {
        copy((part_matrix + o * dims_.inputs) * size, (tensor_matrix + row(o) * dims_.inputs) * size,
             dims_.inputs * size);
      }
      continue;
    }
    // Blocked transpose: uses whole cache lines on both sides.
    constexpr int64_t kBlock = 32;
    for (int64_t o0 = 0; o0 < dims_.outputs; o0 += kBlock) {
      const int64_t o1 = std::min(o0 + kBlock, dims_.outputs);
      for (int64_t k = 0; k < dims_.inputs; ++k) {
        for (int64_t o = o0; o < o1; ++o) {
          copy((part_matrix + o * dims_.inputs + k) * size, (tensor_matrix + k * outputs_ + row(o)) * size, size);
        }
      }
    }
  }
}

void PartLayout::read(std::span<std::byte> part, std::span<const std::byte> tensor, int64_t size) const {
  QKV_ASSERT(static_cast<int64_t>(part.size()) == dims_.count() * size &&
                 static_cast<int64_t>(tensor.size()) == tensor_count() * size,
             "a part of ", part.size(), " bytes is read from a tensor of ", tensor.size());
  walk(size, [&](int64_t at, int64_t in_tensor, int64_t bytes) {
    std::memcpy(part.data() + at, tensor.data() + in_tensor, static_cast<size_t>(bytes));
  });
}

void PartLayout::write(std::span<std::byte> tensor, std::span<const std::byte> part, int64_t size) const {
  QKV_ASSERT(static_cast<int64_t>(part.size()) == dims_.count() * size &&
                 static_cast<int64_t>(tensor.size()) == tensor_count() * size,
             "a part of ", part.size(), " bytes is written to a tensor of ", tensor.size());
  walk(size, [&](int64_t at, int64_t in_tensor, int64_t bytes) {
    std::memcpy(tensor.data() + in_tensor, part.data() + at, static_cast<size_t>(bytes));
  });
}

}  // namespace qkv

#include "core/tensor.h"

#include "base/error.h"

namespace qkv {

Tensor::Tensor(Device& device, std::byte* data, Format format, const Shape& shape)
    : device_(&device), data_(data), format_(format), shape_(shape) {
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides_[static_cast<size_t>(axis)] = stride;
    stride *= shape[axis];
  }
}

Tensor::Tensor(const Storage& storage, const Shape& shape)
    : Tensor(storage.device(), storage.data(), storage.format(), shape) {
  QKV_CHECK(storage.format().bytes_for(shape) <= storage.bytes(), "a tensor ", *this, " needs ",
            storage.format().bytes_for(shape), " bytes but its storage holds ", storage.bytes());
}

int64_t Tensor::rows() const {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < rank(); ++axis) rows *= dim(axis);
  return rows;
}

int64_t Tensor::element_offset(int64_t i) const {
  int64_t offset = 0;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    offset += i % dim(axis) * stride(axis);
    i /= dim(axis);
  }
  return offset;
}

bool Tensor::contiguous() const {
  int64_t expected = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (dim(axis) > 1 && stride(axis) != expected) return false;
    expected *= dim(axis);
  }
  return true;
}

Tensor Tensor::view(const Shape& shape) const {
  QKV_CHECK(shape.count() == count(), "view: ", *this, " has ", count(), " elements but ", shape, " has ",
            shape.count());
  QKV_CHECK(contiguous(), "view: ", *this, " is not contiguous, so it cannot be seen as ", shape,
            Hint("copy it first, or use split_last, merge_last or flatten_to"));
  return Tensor(*device_, data_, format_, shape).with_node(node_);
}

Tensor Tensor::slice(int axis, int64_t begin, int64_t count) const {
  QKV_CHECK(begin >= 0 && count >= 0 && begin <= dim(axis) - count, "slice: ", count, " from ", begin,
            " on is not inside axis ", axis, " of ", *this);
  QKV_CHECK(format_.plain() || (axis != -1 && axis != rank() - 1), "slice: a row of ", format_,
            " blocks cannot be cut inside");
  Tensor t = *this;
  t.shape_ = shape_.with(axis, count);
  if (format_.panels()) {
    QKV_CHECK(axis == 0 && rank() == 3, "slice: the rows of ", *this,
              " lie interleaved, only whole matrices can be cut");
    t.data_ += begin * format_.bytes_for(Shape{dim(1), dim(2)});
  } else {
    t.data_ += begin * stride(axis) * format_.block_bytes() / format_.block_elements();
  }
  return t;
}

Tensor Tensor::split_last(int64_t outer, int64_t inner) const {
  QKV_CHECK(rank() >= 1 && rank() < Shape::kMaxRank && outer * inner == cols(), "split_last: ", *this,
            " does not split into ", outer, " x ", inner);
  Tensor t = *this;
  std::array<int64_t, Shape::kMaxRank> dims{};
  const auto n = static_cast<size_t>(rank());
  for (size_t i = 0; i + 1 < n; ++i) dims[i] = dim(static_cast<int>(i));
  dims[n - 1] = outer;
  dims[n] = inner;
  t.shape_ = Shape(std::span<const int64_t>(dims.data(), n + 1));
  t.strides_[n] = stride(-1);
  t.strides_[n - 1] = inner * stride(-1);
  return t;
}

Tensor Tensor::merge_last() const {
  QKV_CHECK(rank() >= 2 && (stride(-2) == dim(-1) * stride(-1) || dim(-2) <= 1), "merge_last: the last two axes of ",
            *this, " do not lie one after the other");
  Tensor t = *this;
  const auto n = static_cast<size_t>(rank());
  t.shape_ = Shape(shape_.dims().first(n - 1)).with(-1, dim(-2) * dim(-1));
  t.strides_[n - 2] = stride(-1);
  return t;
}

Tensor Tensor::flatten_to(int rank_wanted) const {
  QKV_CHECK(rank_wanted >= 1 && rank_wanted <= rank(), "flatten_to: ", *this, " cannot become rank ", rank_wanted);
  Tensor t = *this;
  while (t.rank() > rank_wanted) {
    QKV_CHECK(t.stride(0) == t.dim(1) * t.stride(1) || t.dim(0) <= 1, "flatten_to: the leading axes of ", *this,
              " do not lie one after the other", Hint("copy it first"));
    const int64_t joined = t.dim(0) * t.dim(1);
    const auto n = static_cast<size_t>(t.rank());
    t.shape_ = Shape(t.shape_.dims().last(n - 1)).with(0, joined);
    for (size_t i = 0; i + 1 < n; ++i) t.strides_[i] = t.strides_[i + 1];
  }
  return t;
}

Tensor Tensor::transposed(int a, int b) const {
  QKV_CHECK(format_.plain(), "transposed: ", format_, " blocks cannot be transposed in place");
  Tensor t = *this;
  const int64_t size_a = dim(a), size_b = dim(b), stride_a = stride(a), stride_b = stride(b);
  t.shape_ = shape_.with(a, size_b).with(b, size_a);
  t.strides_[static_cast<size_t>(a < 0 ? a + rank() : a)] = stride_b;
  t.strides_[static_cast<size_t>(b < 0 ? b + rank() : b)] = stride_a;
  return t;
}

Tensor Tensor::expanded(int axis, int64_t count) const {
  QKV_CHECK(dim(axis) == 1, "expanded: axis ", axis, " of ", *this, " has size ", dim(axis), " but only 1 can repeat");
  Tensor t = *this;
  t.shape_ = shape_.with(axis, count);
  t.strides_[static_cast<size_t>(axis < 0 ? axis + rank() : axis)] = 0;
  return t;
}

Tensor Tensor::rebased(const std::byte* from, std::byte* to) const {
  Tensor t = *this;
  t.data_ = to + (data_ - from);
  return t;
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  if (!t.defined()) return out << "(no tensor)";
  return out << t.format() << ' ' << t.shape();
}

}  // namespace qkv

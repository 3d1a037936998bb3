#include "core/shape.h"

#include <algorithm>

#include "base/error.h"

namespace qkv {

Shape::Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) {
  QKV_CHECK(dims.size() <= kMaxRank, "a shape holds at most ", kMaxRank, " dimensions but ", dims.size(), " were given",
            Hint("flatten the leading dimensions into rows"));
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  int64_t count = 1;
  for (const int64_t d : dims) {
    QKV_CHECK(d >= 0, "a dimension is ", d, " in ", *this, " but must be 0 or more", Hint("sizes count from 0"));
    // Checked even if one dimension is 0: views replace single dimensions.
    QKV_CHECK(d == 0 || !__builtin_mul_overflow(count, d, &count), "the elements of ", *this, " do not fit in 64 bits",
              Hint("no memory holds so many numbers: one of the sizes is wrong"));
  }
}

int64_t Shape::count() const {
  int64_t count = 1;
  for (const int64_t d : dims()) count *= d;
  return count;
}

Shape Shape::with(int axis, int64_t size) const {
  Shape changed = *this;
  changed.dims_[index(axis)] = size;
  return Shape(changed.dims());
}

bool Shape::operator==(const Shape& other) const {
  return std::ranges::equal(dims(), other.dims());
}

size_t Shape::index(int axis) const {
  const int i = axis < 0 ? axis + rank_ : axis;
  QKV_CHECK(i >= 0 && i < rank_, "axis ", axis, " does not exist in ", *this,
            Hint("axes count from 0, or from -1 at the end"));
  return static_cast<size_t>(i);
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  const char* separator = "";
  for (const int64_t d : shape.dims()) {
    out << separator << d;
    separator = ", ";
  }
  return out << ']';
}

}  // namespace qkv

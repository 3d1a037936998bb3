// Sizes of up to five dimensions, inline. Letters used everywhere:
//   B batch, T query positions, S key positions, N rows (all B x T flattened), C width, H heads, G key/value heads,
//   D head width, F feed-forward width, V vocabulary, E experts.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>

namespace qkv {

class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[index(axis)]; }  // negative axes count from the end
  int64_t count() const;                                             // product of all; 1 for a scalar
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  Shape with(int axis, int64_t size) const;  // the same shape with one dimension replaced

  bool operator==(const Shape& other) const;

 private:
  size_t index(int axis) const;

  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace qkv

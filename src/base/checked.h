// Arithmetic on sizes read from files: overflow is an Error that names the value.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace qkv {

// The value as a T; an Error if a T cannot hold it.
template <std::integral T, std::integral From>
T narrow(From value, std::string_view what) {
  // The unary plus prints 8-bit integers as numbers.
  QKV_CHECK(std::in_range<T>(value), what, " is ", +value, " but must lie in [", +std::numeric_limits<T>::min(), ", ",
            +std::numeric_limits<T>::max(), "]", Hint("the file is damaged, or made for a larger program"));
  return static_cast<T>(value);
}

// A uint64_t with a name for error texts, kept through an expression:
//   CheckedU64 end = CheckedU64(offset, "end of tensor 'wte'") + CheckedU64(rows, "size of tensor 'wte'") * row_bytes;
// The name is not copied: it must outlive the expression. Of two names the left one is kept.
class CheckedU64 {
 public:
  template <std::integral T>
  CheckedU64(T value, std::string_view what) : value_(narrow<uint64_t>(value, what)), what_(what) {}

  uint64_t value() const { return value_; }
  std::string_view what() const { return what_; }

  template <std::integral T>
  T as() const {
    return narrow<T>(value_, what_);
  }

  friend CheckedU64 operator+(CheckedU64 a, CheckedU64 b) {
    uint64_t sum = 0;
    if (__builtin_add_overflow(a.value_, b.value_, &sum)) a.fail("+", b);
    return {sum, a.what_};
  }
  friend CheckedU64 operator*(CheckedU64 a, CheckedU64 b) {
    uint64_t product = 0;
    if (__builtin_mul_overflow(a.value_, b.value_, &product)) a.fail("*", b);
    return {product, a.what_};
  }
  template <std::integral T>
  friend CheckedU64 operator+(CheckedU64 a, T b) {
    return a + CheckedU64(b, a.what_);
  }
  template <std::integral T>
  friend CheckedU64 operator*(CheckedU64 a, T b) {
    return a * CheckedU64(b, a.what_);
  }

 private:
  [[noreturn]] void fail(const char* operation, CheckedU64 b) const {
    QKV_FAIL(what_, ": ", value_, " ", operation, " ", b.value_, " does not fit in 64 bits",
             Hint("the file is damaged"));
  }

  uint64_t value_;
  std::string_view what_;
};

// The next multiple of a power of two.
inline CheckedU64 align_up(CheckedU64 value, uint64_t alignment) {
  QKV_CHECK(std::has_single_bit(alignment), value.what(), ": the alignment is ", alignment,
            " but must be a power of two", Hint("the file is damaged"));
  return {(value + (alignment - 1)).value() & ~(alignment - 1), value.what()};
}

}  // namespace qkv

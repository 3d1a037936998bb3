// Element types and memory formats.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "base/blocks.h"
#include "base/half.h"

namespace qkv {

enum class DType : uint8_t { f64, f32, bf16, f16, i8, i32, i64 };

constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::i8:
      return 1;
  }
  return 0;
}

constexpr bool is_float(DType t) {
  return t == DType::f64 || t == DType::f32 || t == DType::bf16 || t == DType::f16;
}

const char* name_of(DType t);
std::ostream& operator<<(std::ostream& out, DType t);

// The unit roundoff: the largest relative error of rounding a number to this type (0 for integers).
constexpr double unit_roundoff(DType t) {
  switch (t) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    default:
      return 0;
  }
}

class Shape;

// A plain dtype, or a block format whose elements decode to that dtype.
struct Format {
  DType dtype = DType::f32;
  Block block = Block::none;
  int32_t group = 0;  // q8, q4: elements of a row that share a scale; 0: the whole row

  Format() = default;
  Format(DType t) : dtype(t) {}  // NOLINT: a plain dtype is a format
  explicit Format(Block b) : block(b) {}
  Format(Block b, int32_t group);  // q8 or q4; Error unless the group is 0, 32, 64, 128 or 256

  bool plain() const { return block == Block::none; }
  bool panels() const { return block == Block::q8 || block == Block::q4; }  // rows are interleaved: core/panels.h
  int64_t block_elements() const;                                           // along a row
  int64_t block_bytes() const;
  int64_t bytes_for(int64_t elements) const;    // of consecutive rows; Error unless whole blocks
  int64_t bytes_for(const Shape& shape) const;  // of any format
  bool operator==(const Format&) const = default;
};

std::ostream& operator<<(std::ostream& out, Format f);

}  // namespace qkv

// The memory layout of q8 and q4: panels of sixteen rows of a matrix. Each row is one vector lane, so a dot product
// needs no sum across lanes. K is the width, a multiple of 32; missing rows of the last panel are zeros.
//
//   panel      [scales of groups 0, 1][values of group 0][values of group 1][scales of groups 2, 3] ...
//   scales     64 bytes: a word per row, the bf16 scale of the even group in its low half, of the odd group above
//   q8 values  64 bytes hold four columns:  byte 4 r + i is column i of row r, plus 128
//   q4 values  64 bytes hold eight columns: byte 4 r + i is column i of row r in its low half and column 4 + i
//              above, each plus 8
//
// A weight is (byte - 128) or (nibble - 8) times its scale. Each of these 64-byte lines is one cache line.
#pragma once

#include <cstddef>

#include "core/dtype.h"

namespace qkv {

constexpr int64_t kPanelRows = 16, kPanelLine = 64;

class PanelLayout {
 public:
  static constexpr int64_t kWidest = 1 << 16;  // sums of a whole row stay in 32 bits

  PanelLayout(Format format, int64_t width);  // Error unless the width is whole groups

  int64_t group() const { return group_; }  // elements
  int64_t groups() const { return groups_; }
  int64_t offset() const { return nibbles_ ? 8 : 128; }  // added to every value
  int64_t bytes() const { return scale_at(groups_ + groups_ % 2) - groups_ % 2 * group_bytes(); }

  // Bytes from the panel's start.
  int64_t scale_at(int64_t g) const { return g / 2 * (kPanelLine + 2 * group_bytes()); }  // of row 0
  int64_t scale_at(int64_t g, int64_t row) const { return scale_at(g) + 4 * row + 2 * (g % 2); }
  int64_t value_at(int64_t k, int64_t row) const {
    const int64_t g = k / group_, in_group = k % group_, columns = nibbles_ ? 8 : 4;
    return scale_at(g) + kPanelLine + g % 2 * group_bytes() + in_group / columns * kPanelLine + 4 * row + k % 4;
  }
  bool upper_half(int64_t k) const { return nibbles_ && k % 8 >= 4; }

  // One weight, and its scale.
  int value(const std::byte* panel, int64_t row, int64_t k) const {
    const auto byte = static_cast<unsigned>(panel[value_at(k, row)]);
    if (!nibbles_) return static_cast<int>(byte) - 128;
    return static_cast<int>(upper_half(k) ? byte >> 4 : byte & 15U) - 8;
  }
  float scale(const std::byte* panel, int64_t row, int64_t g) const {
    return to_float(*reinterpret_cast<const Bf16*>(panel + scale_at(g, row)));
  }

 private:
  int64_t group_bytes() const { return nibbles_ ? 8 * group_ : 16 * group_; }

  int64_t group_, groups_;
  bool nibbles_;
};

}  // namespace qkv

// How q8 and q4 lie in memory: panels of sixteen rows of a matrix, so that a row is a lane and a dot product never has
// to add lanes. K is the width, a multiple of 32; rows are padded to sixteen with zeros.
//
//   panel      [scales of groups 0, 1][values of group 0][values of group 1][scales of groups 2, 3] ...
//   scales     64 bytes: for each row two bf16 scales, of the even group in the low half of a word, of the odd one
//   above q8 values  a line of 64 bytes holds four columns: byte 4 r + i is column i of row r, plus 128 q4 values  a
//   line of 64 bytes holds eight: byte 4 r + i is column i in its low half and column 4 + i above, plus 8
//
// A value is (byte - 128 or nibble - 8) times its scale. Every line starts on a cache line.
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

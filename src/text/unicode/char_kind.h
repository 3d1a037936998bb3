// Character classes of UTF-8 text: the Unicode categories used by pre-tokenizer patterns, one table lookup each. A byte
// that is not part of valid UTF-8 counts as a character of no class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace qkv {

enum CharKind : uint8_t {
  kUpper = 1,        // Lu, Lt
  kLower = 2,        // Ll
  kOtherLetter = 4,  // Lm, Lo
  kMark = 8,         // M
  kNumber = 16,      // N
  kSpace = 32,       // White_Space
  kSymbol = 64,      // P, S
  kLineEnd = 128,    // carriage return and line feed, in addition to kSpace
  kLetter = kUpper | kLower | kOtherLetter,
};

struct Char {
  uint32_t code;  // the byte itself if it is not valid UTF-8
  uint8_t bytes;
  uint8_t kind;
};

// Built once from utf8proc's categories: blocks of 256 code points, equal blocks shared.
class CharKinds {
 public:
  static const CharKinds& table();

  uint8_t of(uint32_t code) const { return blocks_[block_of_[code >> 8]][code & 255]; }

  // The character at p < end.
  Char at(const unsigned char* p, const unsigned char* end) const {
    if (*p < 0x80) return {*p, 1, ascii_[*p]};
    return beyond_ascii(p, end);
  }

 private:
  CharKinds();

  static bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

  Char beyond_ascii(const unsigned char* p, const unsigned char* end) const {
    const ptrdiff_t left = end - p;
    const uint32_t lead = *p;
    if (lead >= 0xE0 && lead < 0xF0) {
      if (left >= 3 && continues(p[1]) && continues(p[2])) {
        const uint32_t code = (lead & 15U) << 12 | (p[1] & 63U) << 6 | (p[2] & 63U);
        if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3, of(code)};
      }
    } else if (lead >= 0xC2 && lead < 0xE0) {
      if (left >= 2 && continues(p[1])) {
        const uint32_t code = (lead & 31U) << 6 | (p[1] & 63U);
        return {code, 2, of(code)};
      }
    } else if (lead >= 0xF0 && lead < 0xF5) {
      if (left >= 4 && continues(p[1]) && continues(p[2]) && continues(p[3])) {
        const uint32_t code = (lead & 7U) << 18 | (p[1] & 63U) << 12 | (p[2] & 63U) << 6 | (p[3] & 63U);
        if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4, of(code)};
      }
    }
    return {lead, 1, 0};
  }

  using Block = std::array<uint8_t, 256>;

  std::array<uint8_t, 128> ascii_{};
  std::array<uint8_t, 0x1100> block_of_{};
  std::vector<Block> blocks_;
};

}  // namespace qkv

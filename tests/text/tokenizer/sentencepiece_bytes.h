// Writes SentencePiece models byte by byte, for tests of valid and damaged files.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::test {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out.push_back(static_cast<char>((value & 127) | 128));
  out.push_back(static_cast<char>(value));
  return out;
}

inline std::string bytes_field(uint32_t field, std::string_view value) {
  return varint(field << 3 | 2) + varint(value.size()) + std::string(value);
}
inline std::string varint_field(uint32_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}
inline std::string float_field(uint32_t field, float value) {
  std::string out = varint(field << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>((bits >> (8 * i)) & 0xff));
  return out;
}

constexpr uint64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

inline std::string piece_field(std::string_view text, float score, uint64_t type = kNormal) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) + varint_field(3, type));
}

struct ModelBytes {
  std::string pieces = piece_field("<unk>", 0, kUnknown) + piece_field("<s>", 0, kControl) +
                       piece_field("</s>", 0, kControl) + piece_field("\xe2\x96\x81", -1) + piece_field("a", -2) +
                       piece_field("b", -3) + piece_field("ab", -1.5) +
                       piece_field(
                           "\xe2\x96\x81"
                           "ab",
                           -1.25);
  std::string trainer;     // fields of trainer_spec
  std::string normalizer;  // fields of normalizer_spec
  std::string rest;        // more fields of the model

  std::string bytes() const { return pieces + bytes_field(2, trainer) + bytes_field(3, normalizer) + rest; }
};

inline std::string byte_pieces() {
  std::string out;
  for (int byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    out += piece_field(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0, kByte);
  }
  return out;
}

}  // namespace qkv::test

#include "text/tokenizer/models/byte_alphabet.h"

#include <array>

#include "text/unicode/characters.h"

namespace qkv {
namespace {

struct Alphabet {
  std::array<std::string, 256> letters;
  std::array<int16_t, 512> bytes;

  // Visible characters of Latin-1 stand for themselves, the others follow from U+0100 on.
  Alphabet() {
    bytes.fill(-1);
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const uint32_t code = visible ? byte : next++;
      letters[byte] = utf8_of(code);
      bytes[code] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet all;
  return all;
}

}  // namespace

std::string_view byte_letter(unsigned char byte) {
  return alphabet().letters[byte];
}

int byte_of_letter(uint32_t code) {
  return code < alphabet().bytes.size() ? alphabet().bytes[code] : -1;
}

std::string spell_bytes(std::string_view bytes) {
  std::string spelled;
  spelled.reserve(bytes.size() * 2);
  for (const char byte : bytes) spelled += byte_letter(static_cast<unsigned char>(byte));
  return spelled;
}

bool append_spelled(std::string_view spelled, std::string& bytes) {
  const size_t before = bytes.size();
  while (!spelled.empty()) {
    const Char c = char_at(spelled);
    const int byte = is_stray_byte(c) ? -1 : byte_of_letter(c.code);
    if (byte < 0) {
      bytes.resize(before);
      return false;
    }
    bytes += static_cast<char>(byte);
    spelled.remove_prefix(c.bytes);
  }
  return true;
}

}  // namespace qkv

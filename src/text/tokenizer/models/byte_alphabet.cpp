#include "text/tokenizer/models/byte_alphabet.h"

#include <array>

#include "text/unicode/characters.h"

namespace qkv {
namespace {

struct Alphabet {
  std::array<std::string, 256> letters;
  std::array<int16_t, 512> bytes;

  // Visible Latin-1 characters map to themselves, the other bytes to U+0100 and up.
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

std::string bytes_to_letters(std::string_view bytes) {
  std::string letters;
  letters.reserve(bytes.size() * 2);
  for (const char byte : bytes) letters += byte_letter(static_cast<unsigned char>(byte));
  return letters;
}

bool append_letters_as_bytes(std::string_view letters, std::string& bytes) {
  const size_t before = bytes.size();
  while (!letters.empty()) {
    const Char c = char_at(letters);
    const int byte = is_stray_byte(c) ? -1 : byte_of_letter(c.code);
    if (byte < 0) {
      bytes.resize(before);
      return false;
    }
    bytes += static_cast<char>(byte);
    letters.remove_prefix(c.bytes);
  }
  return true;
}

}  // namespace qkv

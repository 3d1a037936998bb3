// GPT-2's byte alphabet (bytes_to_unicode): each of the 256 bytes as one visible character, its letter. Byte-level
// vocabularies are stored this way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

// The letter of a byte.
std::string_view byte_letter(unsigned char byte);

// The byte of a letter, -1 for characters outside the alphabet.
int byte_of_letter(uint32_t code);

std::string bytes_to_letters(std::string_view bytes);

// The inverse. False, and nothing is appended, if the text has a character outside the alphabet.
bool append_letters_as_bytes(std::string_view letters, std::string& bytes);

}  // namespace qkv

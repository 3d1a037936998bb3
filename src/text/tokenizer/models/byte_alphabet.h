// GPT-2's alphabet: each of the 256 bytes written as one visible character, as byte-level vocabularies are stored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

// The character that stands for the byte.
std::string_view byte_letter(unsigned char byte);

// The byte that a character stands for, -1 for characters outside the alphabet.
int byte_of_letter(uint32_t code);

std::string spell_bytes(std::string_view bytes);

// False, and nothing appended, if the text has a character outside the alphabet.
bool append_spelled(std::string_view spelled, std::string& bytes);

}  // namespace qkv

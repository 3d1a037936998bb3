// UTF-8 as the tokenizers walk over it: whole characters where the bytes are right, single bytes where they are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

inline bool is_utf8_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Bytes of the well-formed character that starts the text (no surrogates, no overlong forms); 0 if none does.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// True for the start of a well-formed character that more bytes could complete.
bool is_utf8_prefix(std::string_view text);

// How many bytes at the front, where no character starts, are one broken sequence: the start of a character that breaks
// off, or a single byte.
size_t broken_length(std::string_view text);

// Moves what is certain from the front of the bytes to the result, with one U+FFFD for each broken sequence. What may
// still become a character stays, unless no more bytes follow.
enum class MoreBytes { may_follow, no };
std::string take_utf8(std::string& bytes, MoreBytes more);

// What the lead byte promises, 1 to 4, whatever follows: SentencePiece walks by it.
inline size_t utf8_promised(char lead) {
  constexpr unsigned char kLengths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return kLengths[static_cast<unsigned char>(lead) >> 4];
}

// The text must not be empty. A byte that starts no character stands for itself.
std::string_view first_character(std::string_view text);
// The first extended grapheme cluster.
std::string_view first_grapheme(std::string_view text);

// The code point of a well-formed character.
int32_t code_point(std::string_view character);

}  // namespace qkv

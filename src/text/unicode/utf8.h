// Iterating over UTF-8: whole characters where the bytes are valid, single bytes where they are not.
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

// Bytes of the well-formed character at the start of the text (no surrogates, no overlong forms); 0 if there is none.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// True if the text is an incomplete character that more bytes could complete.
bool is_utf8_prefix(std::string_view text);

// For a text that starts with invalid UTF-8: bytes of the first invalid sequence, i.e. a truncated character or a
// single byte. Each becomes one U+FFFD.
size_t invalid_utf8_length(std::string_view text);

// Moves the decodable part from the front of `bytes` to the result, with one U+FFFD for each invalid sequence. An
// incomplete character at the end stays in `bytes` if more bytes may follow.
enum class MoreBytes { may_follow, no };
std::string take_utf8(std::string& bytes, MoreBytes more);

// Length of the character by its lead byte alone, 1 to 4, whatever follows. SentencePiece steps this way.
inline size_t utf8_length_from_lead(char lead) {
  constexpr unsigned char kLengths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return kLengths[static_cast<unsigned char>(lead) >> 4];
}

// The text must not be empty. A byte that starts no character is returned as it is.
std::string_view first_character(std::string_view text);
// The first extended grapheme cluster.
std::string_view first_grapheme(std::string_view text);

// The code point of a well-formed character.
int32_t code_point(std::string_view character);

}  // namespace qkv

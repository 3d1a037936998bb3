#include "inspect/texts/token_kinds.h"

#include <optional>
#include <utility>

#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr std::pair<std::string_view, TokenKind> kMarks[] = {
    {".", TokenKind::period},    {"。", TokenKind::period},  {"．", TokenKind::period},   {"｡", TokenKind::period},
    {",", TokenKind::comma},     {"，", TokenKind::comma},   {"、", TokenKind::comma},    {":", TokenKind::colon},
    {"：", TokenKind::colon},    {";", TokenKind::colon},    {"；", TokenKind::colon},    {"?", TokenKind::question},
    {"？", TokenKind::question}, {"!", TokenKind::question}, {"！", TokenKind::question}, {"\n", TokenKind::newline},
};

std::optional<TokenKind> mark_of(std::string_view character) {
  for (const auto& [mark, kind] : kMarks) {
    if (character == mark) return kind;
  }
  return std::nullopt;
}

}  // namespace

TokenKind kind_of(std::string_view text) {
  std::optional<TokenKind> found;
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    text.remove_prefix(character.size());
    if (character == " " || character == "\t" || character == "\r" || character == "　") continue;
    const std::optional<TokenKind> kind = mark_of(character);
    if (!kind || (found && *found != *kind)) return TokenKind::other;
    found = kind;
  }
  return found.value_or(TokenKind::other);
}

TokenKind kind_of(const Tokenizer& tokenizer, int32_t id) {
  if (!tokenizer.has(id)) return TokenKind::other;
  return tokenizer.is_special(id) ? TokenKind::special : kind_of(tokenizer.bytes_of(id));
}

}  // namespace qkv

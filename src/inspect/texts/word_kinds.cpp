#include "inspect/texts/word_kinds.h"

#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {

WordKind word_kind_of(const Tokenizer& tokenizer, int32_t id) {
  if (!tokenizer.has(id) || tokenizer.is_special(id)) return WordKind::special;
  const std::string bytes = tokenizer.bytes_of(id);
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return WordKind::space;
  const std::string_view rest = std::string_view(bytes).substr(first);
  if (!is_utf8(rest)) return WordKind::part;  // of a character
  const Char c = char_at(rest);
  if (is_chinese(c)) return WordKind::chinese;
  if (is_number(c)) return WordKind::number;
  if (is_punctuation(c)) return WordKind::sign;
  return first > 0 ? WordKind::word : WordKind::part;
}

std::vector<int32_t> word_kinds(const Tokenizer& tokenizer, int64_t vocabulary) {
  std::vector<int32_t> kinds;
  for (int32_t id = 0; id < vocabulary; ++id) kinds.push_back(static_cast<int32_t>(word_kind_of(tokenizer, id)));
  return kinds;
}

}  // namespace qkv

#include "eval/ngrams.h"

#include "text/unicode/utf8.h"

namespace qkv {
namespace {

bool is_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Calls take(character, code point) for each character; an invalid byte is U+FFFD.
template <class Take>
void walk(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    take(character, utf8_length(character) == 0 ? 0xFFFD : code_point(character));
    text.remove_prefix(character.size());
  }
}

}  // namespace

std::u32string characters_of(std::string_view text) {
  std::u32string out;
  walk(text, [&](std::string_view, int32_t c) { out.push_back(static_cast<char32_t>(c)); });
  return out;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  const char* start = text.data();
  const auto end_word = [&](const char* end) {
    if (end > start) words.emplace_back(start, static_cast<size_t>(end - start));
  };
  walk(text, [&](std::string_view character, int32_t c) {
    if (!is_space(c)) return;
    end_word(character.data());
    start = character.data() + character.size();
  });
  end_word(text.data() + text.size());
  return words;
}

std::u32string WordIds::of(const std::vector<std::string_view>& words) {
  std::u32string out;
  for (const std::string_view word : words)
    out.push_back(ids_.try_emplace(std::string(word), static_cast<char32_t>(ids_.size())).first->second);
  return out;
}

NgramCounts count_ngrams(std::u32string_view symbols, size_t n) {
  NgramCounts counts;
  for (size_t i = 0; i + n <= symbols.size(); ++i) ++counts[symbols.substr(i, n)];
  return counts;
}

}  // namespace qkv

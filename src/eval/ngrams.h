// What BLEU and chrF have in common: a text as symbols (its characters, or numbers of its words) and counted n-grams.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace qkv {

// Bytes that are no UTF-8 become U+FFFD, one each.
std::u32string characters_of(std::string_view text);

// The pieces between white space, as Python's str.split finds it.
std::vector<std::string_view> split_words(std::string_view text);

// Numbers words: equal words, equal numbers.
class WordNumbers {
 public:
  std::u32string of(const std::vector<std::string_view>& words);

 private:
  std::unordered_map<std::string, char32_t> numbers_;
};

// Views into the symbols: valid as long as they are.
using NgramCounts = std::unordered_map<std::u32string_view, int64_t>;
NgramCounts count_ngrams(std::u32string_view symbols, size_t n);

}  // namespace qkv

// Shared by BLEU and chrF: texts as symbol strings (characters or word ids) and n-gram counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/seeded_hash.h"

namespace qkv {

// Each invalid UTF-8 byte becomes U+FFFD.
std::u32string characters_of(std::string_view text);

// Splits at white space like Python's str.split().
std::vector<std::string_view> split_words(std::string_view text);

// Assigns ids to words: equal words, equal ids.
class WordIds {
 public:
  std::u32string of(const std::vector<std::string_view>& words);

 private:
  std::unordered_map<std::string, char32_t, SeededHash> ids_;
};

// The keys are views into the symbols.
using NgramCounts = std::unordered_map<std::u32string_view, int64_t, SeededHash>;
NgramCounts count_ngrams(std::u32string_view symbols, size_t n);

}  // namespace qkv

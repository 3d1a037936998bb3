// SentencePiece's precompiled character map: a trie (double array) of byte strings, each with its replacement. Maps
// come from untrusted files: parse() checks every reachable unit, so that no search can leave the map.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pipeline/growth_limit.h"

namespace qkv {

class Precompiled {
 public:
  // Format: u32 size of the trie in bytes, the trie's u32 units, the replacements, each ended by NUL.
  static Precompiled parse(std::string_view charsmap_bytes, std::string_view what);

  struct Match {
    uint32_t length = 0;  // matched bytes; 0: no rule matches
    std::string_view replacement;
  };

  // The longest rule that matches at the start of the text, as SentencePiece applies it.
  Match longest(std::string_view text) const;

  // Whether any rule starts with this ASCII character.
  bool has_rules_from(char c) const { return !plain_[static_cast<unsigned char>(c) & 127]; }

  // Hugging Face's Precompiled: a grapheme of up to five bytes is replaced as a whole by the shortest rule that matches
  // at its start, otherwise its characters one by one. origin[i]: input offset of the source of output byte i.
  std::string normalize(std::string_view utf8, std::vector<uint32_t>* origin, GrowthLimit* limit = nullptr) const;

  static constexpr const char* kStep = "the normalizer Precompiled";  // for errors

 private:
  enum class Take { shortest, longest };
  Match search(std::string_view text, Take take) const;
  uint32_t check_below(uint32_t node, uint32_t depth, std::vector<uint8_t>& heights, std::string_view what) const;
  std::string_view replacement_at(uint32_t offset) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
  std::array<bool, 128> plain_{};  // ASCII that no rule starts with
};

}  // namespace qkv

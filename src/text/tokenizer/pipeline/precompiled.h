// SentencePiece's precompiled character map: a trie of byte strings, each with the text that takes its place. The maps
// come from model files, so all of a map is looked through when it is read, and no map can lead a search out of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

class Precompiled {
 public:
  // u32 size of the trie in bytes, the trie's units, the replacements with a NUL behind each.
  static Precompiled parse(std::string_view charsmap_bytes, std::string_view what);

  struct Match {
    uint32_t length = 0;  // bytes of the text it stands for; 0: no rule starts here
    std::string_view replacement;
  };

  // What SentencePiece takes: the longest rule that starts the text.
  Match longest(std::string_view text) const;

  // Whether any rule starts with this ASCII character.
  bool has_rules_from(char c) const { return !plain_[static_cast<unsigned char>(c) & 127]; }

  // What Hugging Face's Precompiled does: a grapheme of up to five bytes is replaced whole by the shortest rule that
  // starts it, otherwise each of its characters is. origin[i] is where the source of output byte i starts in the input.
  std::string normalize(std::string_view utf8, std::vector<uint32_t>* origin) const;

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

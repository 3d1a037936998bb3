#include "text/tokenizer/pipeline/precompiled.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr const char* kBadMap = "the tokenizer file is damaged; fetch it again";
constexpr uint32_t kLongestRule = 200;  // bytes; real maps stay below 32. Bounds the depth of a search
constexpr size_t kLongestGrapheme = 5;  // bytes; longer ones are replaced character by character
constexpr uint8_t kUnseen = 255, kOpen = 254;

// A unit of the double array. The child for a byte is at offset ^ byte; a leaf holds an offset into the replacements.
bool has_leaf(uint32_t unit) {
  return ((unit >> 8) & 1) != 0;
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7fff'ffff;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0x8000'00ff;
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200) >> 6);
}

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

}  // namespace

Precompiled Precompiled::parse(std::string_view bytes, std::string_view what) {
  QKV_CHECK(bytes.size() >= 8, what, ": a character map of ", bytes.size(), " bytes is too short to hold one",
            Hint(kBadMap));
  const uint32_t trie_bytes = read_u32(bytes, 0);
  QKV_CHECK(trie_bytes % 4 == 0 && trie_bytes >= 4 && trie_bytes <= bytes.size() - 4, what,
            ": the character map says its trie has ", trie_bytes, " bytes but ", bytes.size() - 4,
            " follow, and it comes in units of 4", Hint(kBadMap));
  Precompiled map;
  map.units_.resize(trie_bytes / 4);
  for (size_t i = 0; i < map.units_.size(); ++i) map.units_[i] = read_u32(bytes, 4 + 4 * i);
  map.replacements_ = bytes.substr(4 + trie_bytes);
  QKV_CHECK(is_utf8(map.replacements_), what, ": the replacements of the character map are not UTF-8", Hint(kBadMap));

  std::vector<uint8_t> heights(map.units_.size(), kUnseen);
  const uint32_t root = offset_of(map.units_[0]);
  map.check_below(root, 0, heights, what);
  for (uint32_t c = 1; c < 128; ++c) {
    const uint32_t child = root ^ c;
    map.plain_[c] = child >= map.units_.size() || label_of(map.units_[child]) != c;
  }
  map.plain_[0] = true;
  return map;
}

// The greatest depth below a node, in bytes. Nodes may be shared, so each is visited once. A cycle or too great a depth
// is an Error.
uint32_t Precompiled::check_below(uint32_t node, uint32_t depth, std::vector<uint8_t>& heights,
                                  std::string_view what) const {
  QKV_CHECK(node < units_.size(), what, ": the character map's trie leads to unit ", node, " but has ", units_.size(),
            Hint(kBadMap));
  if (heights[node] < kOpen) return heights[node];
  QKV_CHECK(heights[node] == kUnseen && depth <= kLongestRule, what, ": the character map's trie ",
            heights[node] == kOpen ? "runs in a circle" : "is too deep", " at unit ", node, Hint(kBadMap));
  heights[node] = kOpen;
  uint32_t height = 0;
  for (uint32_t c = 1; c < 256; ++c) {
    const uint32_t child = node ^ c;
    if (child >= units_.size() || label_of(units_[child]) != c) continue;
    const uint32_t below = child ^ offset_of(units_[child]);
    height = std::max(height, 1 + check_below(below, depth + 1, heights, what));
    if (!has_leaf(units_[child])) continue;
    const uint32_t offset = value_of(units_[below]);
    QKV_CHECK(offset <= replacements_.size(), what, ": the character map points at byte ", offset, " of ",
              replacements_.size(), " of its replacements", Hint(kBadMap));
    QKV_CHECK(offset == replacements_.size() || !is_utf8_continuation(replacements_[offset]), what,
              ": the character map points into the middle of a character at byte ", offset, " of its replacements",
              Hint(kBadMap));
  }
  QKV_CHECK(height <= kLongestRule, what, ": the character map has a rule longer than ", kLongestRule, " bytes",
            Hint(kBadMap));
  heights[node] = static_cast<uint8_t>(height);
  return height;
}

std::string_view Precompiled::replacement_at(uint32_t offset) const {
  const std::string_view rest = std::string_view(replacements_).substr(offset);
  return rest.substr(0, rest.find('\0'));
}

// parse() has checked every unit reachable from here: all offsets are in range.
Precompiled::Match Precompiled::search(std::string_view text, Take take) const {
  Match best;
  uint32_t node = offset_of(units_[0]);
  for (uint32_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const uint32_t child = node ^ c;
    if (c == 0 || child >= units_.size() || label_of(units_[child]) != c) break;
    node = child ^ offset_of(units_[child]);
    if (!has_leaf(units_[child])) continue;
    best = {.length = i + 1, .replacement = replacement_at(value_of(units_[node]))};
    if (take == Take::shortest) break;
  }
  return best;
}

Precompiled::Match Precompiled::longest(std::string_view text) const {
  return search(text, Take::longest);
}

std::string Precompiled::normalize(std::string_view utf8, std::vector<uint32_t>* origin, GrowthLimit* limit) const {
  narrow<uint32_t>(utf8.size(), "length of the text");
  std::string out;
  out.reserve(utf8.size());
  if (origin) origin->clear();
  const auto append = [&](std::string_view text, size_t from) {
    if (limit) limit->spend(text.size(), kStep);
    out.append(text);
    if (origin) origin->insert(origin->end(), text.size(), static_cast<uint32_t>(from));
  };
  const auto append_character = [&](std::string_view character, size_t from) {
    const Match match = search(character, Take::shortest);
    append(match.length > 0 ? match.replacement : character, from);
  };

  size_t at = 0;
  while (at < utf8.size()) {
    const auto first = static_cast<unsigned char>(utf8[at]);
    const bool alone =
        first < 0x80 && first != '\r' && (at + 1 == utf8.size() || static_cast<unsigned char>(utf8[at + 1]) < 0x80);
    if (alone) {
      if (plain_[first]) {
        append(utf8.substr(at, 1), at);
      } else {
        append_character(utf8.substr(at, 1), at);
      }
      ++at;
      continue;
    }
    const std::string_view grapheme = first_grapheme(utf8.substr(at));
    if (grapheme.size() <= kLongestGrapheme) {
      if (const Match match = search(grapheme, Take::shortest); match.length > 0) {
        append(match.replacement, at);
        at += grapheme.size();
        continue;
      }
    }
    for (const size_t end = at + grapheme.size(); at < end;) {
      const std::string_view character = first_character(utf8.substr(at));
      append_character(character, at);
      at += character.size();
    }
  }
  return out;
}

}  // namespace qkv

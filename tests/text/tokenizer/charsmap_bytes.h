// Builds character maps, for tests of valid and damaged ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace qkv::test {

inline void put_u32(std::string& out, uint32_t value) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

// The double array of these rules in the simplest layout: each node's children in their own block of 256 units.
// The leaf of a node is at the start of the block, in the slot of byte 0.
class Charsmap {
 public:
  explicit Charsmap(const std::map<std::string, std::string>& rules) {
    units.assign(256, kUnused);
    units[0] = offset_unit(256);
    block_of[""] = new_block();
    for (const auto& [from, to] : rules) {
      for (size_t n = 1; n <= from.size(); ++n) {
        if (!block_of.contains(from.substr(0, n))) block_of[from.substr(0, n)] = new_block();
      }
    }
    for (const auto& [prefix, block] : block_of) {
      if (prefix.empty()) continue;
      const auto byte = static_cast<unsigned char>(prefix.back());
      const uint32_t at = block_of[prefix.substr(0, prefix.size() - 1)] ^ byte;
      units[at] = offset_unit(at ^ block) | byte;
      if (const auto rule = rules.find(prefix); rule != rules.end()) {
        units[at] |= 1U << 8;
        units[block] = (1U << 31) | static_cast<uint32_t>(replacements.size());
        replacements += rule->second + '\0';
      }
    }
  }

  std::string bytes() const {
    std::string out;
    put_u32(out, static_cast<uint32_t>(units.size() * 4));
    for (const uint32_t unit : units) put_u32(out, unit);
    return out + replacements;
  }

  std::vector<uint32_t> units;
  std::string replacements;
  std::map<std::string, uint32_t> block_of;

 private:
  static constexpr uint32_t kUnused = 0x8000'0000;

  // Offsets that are multiples of 256 are written in the short form.
  static uint32_t offset_unit(uint32_t offset) {
    return offset % 256 == 0 ? (offset >> 8) << 10 | 1U << 9 : offset << 10;
  }
  uint32_t new_block() {
    const auto at = static_cast<uint32_t>(units.size());
    units.resize(units.size() + 256, kUnused);
    return at;
  }
};

}  // namespace qkv::test

// Writes GGUF files without tensors, for tests of valid and damaged files.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::test {

inline std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

class GgufBytes {
 public:
  void text(const std::string& key, std::string_view value) { fields_[key] = number(8, 4) + length_prefixed(value); }
  void flag(const std::string& key, bool value) { fields_[key] = number(7, 4) + number(value ? 1 : 0, 1); }
  void integer(const std::string& key, uint64_t value) { fields_[key] = number(4, 4) + number(value, 4); }
  void texts(const std::string& key, const std::vector<std::string_view>& values) {
    std::string& out = fields_[key] = number(9, 4) + number(8, 4) + number(values.size(), 8);
    for (const std::string_view value : values) out += length_prefixed(value);
  }
  void integers(const std::string& key, const std::vector<int32_t>& values) {
    std::string& out = fields_[key] = number(9, 4) + number(5, 4) + number(values.size(), 8);
    for (const int32_t value : values) out += number(static_cast<uint32_t>(value), 4);
  }
  void floats(const std::string& key, const std::vector<float>& values) {
    std::string& out = fields_[key] = number(9, 4) + number(6, 4) + number(values.size(), 8);
    for (const float value : values) out += number(std::bit_cast<uint32_t>(value), 4);
  }
  void remove(const std::string& key) { fields_.erase(key); }

  std::string bytes() const {
    std::string out = "GGUF" + number(3, 4) + number(0, 8) + number(fields_.size(), 8);
    for (const auto& [key, value] : fields_) out += length_prefixed(key) + value;
    return out;
  }

 private:
  static std::string number(uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    return out;
  }
  static std::string length_prefixed(std::string_view text) { return number(text.size(), 8) + std::string(text); }

  std::map<std::string, std::string> fields_;
};

}  // namespace qkv::test

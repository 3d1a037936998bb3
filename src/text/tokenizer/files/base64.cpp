#include "text/tokenizer/files/base64.h"

#include <cstdint>

#include "base/error.h"

namespace qkv {
namespace {

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::string decode_base64(std::string_view text, std::string_view what) {
  constexpr const char* kDamaged = "the file is damaged; fetch it again";
  QKV_CHECK(text.size() % 4 == 0, what, ": ", text.size(), " letters of base64, but they come in fours",
            Hint(kDamaged));
  const std::string_view digits = text.substr(0, text.size() - (text.ends_with("==")  ? 2
                                                                : text.ends_with('=') ? 1
                                                                                      : 0));
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int digit = digit_of(digits[i]);
    QKV_CHECK(digit >= 0, what, ": letter ", i, " is not base64", Hint(kDamaged));
    bits = bits << 6 | static_cast<uint32_t>(digit);
    // The second, third and fourth character of a group of four each complete a byte.
    if (i % 4 != 0) out.push_back(static_cast<char>(bits >> (6 - 2 * (i % 4)) & 0xff));
  }
  return out;
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](size_t i) { return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U; };
    const uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t i = 0; i < 4; ++i) out += at + i > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * i) & 63];
  }
  return out;
}

}  // namespace qkv

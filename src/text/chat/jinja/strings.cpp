#include "text/chat/jinja/strings.h"

#include <charconv>
#include <cstdint>

#include "text/unicode/characters.h"

namespace qkv::jinja {
namespace {

// The character of an escape like \xE9: reads `digits` hexadecimal digits from the front of the text.
int32_t take_code(std::string_view& text, size_t digits, FunctionRef<void(std::string_view)> fail) {
  uint32_t code = 0;
  const std::string_view read = text.substr(0, digits);
  const auto result = std::from_chars(read.data(), read.data() + read.size(), code, 16);
  const bool whole = read.size() == digits && result.ec == std::errc() && result.ptr == read.data() + read.size();
  if (!whole) fail("an escape in a string has too few hexadecimal digits");
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail("an escape in a string stands for no character");
  text.remove_prefix(digits);
  return static_cast<int32_t>(code);
}

}  // namespace

std::string unescape(std::string_view written, FunctionRef<void(std::string_view problem)> fail) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeant = "\a\b\f\n\r\t\v\\'\"";
  std::string out;
  while (!written.empty()) {
    const size_t plain = std::min(written.find('\\'), written.size());
    out += written.substr(0, plain);
    written.remove_prefix(plain);
    if (written.size() < 2) break;
    const char c = written[1];
    written.remove_prefix(2);
    if (const size_t simple = kLetters.find(c); simple != kLetters.npos) {
      out += kMeant[simple];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      out += utf8_of(static_cast<uint32_t>(take_code(written, c == 'x' ? 2 : c == 'u' ? 4 : 8, fail)));
    } else if (c >= '0' && c <= '7') {
      int32_t code = c - '0';
      for (int more = 0; more < 2 && !written.empty() && written[0] >= '0' && written[0] <= '7'; ++more) {
        code = code * 8 + (written[0] - '0');
        written.remove_prefix(1);
      }
      out += utf8_of(static_cast<uint32_t>(code));
    } else if (c == 'N') {
      fail("an escape in a string names its character");
    } else if (c != '\n') {  // an escaped line end is dropped
      out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace qkv::jinja

// What a model answered: the number after "So 568 × 5 =".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace qkv::server {

// The number that follows `before` in a text, if it is all there: something comes after it. At most 12 digits.
inline std::optional<int64_t> number_after(const std::string& text, const std::string& before) {
  size_t at = text.find(before);
  if (at == text.npos) return std::nullopt;
  at += before.size();
  while (at < text.size() && text[at] == ' ') ++at;
  size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  if (end == at || end == text.size() || end - at > 12) return std::nullopt;
  int64_t number = 0;
  for (; at < end; ++at) number = 10 * number + (text[at] - '0');
  return number;
}

}  // namespace qkv::server

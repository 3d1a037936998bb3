#include "inspect/texts/shown_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/tokenizer/display_spans.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

// Characters unchanged, other bytes as \xNN.
std::string by_bytes(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    if (const size_t length = utf8_length(bytes.substr(at)); length > 0) {
      out += bytes.substr(at, length);
      at += length;
    } else {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(bytes[at++]));
    }
  }
  return out;
}

// \x80 to \xFF, as by_bytes() writes them.
bool starts_with_byte(std::string_view text) {
  const auto is_one_of = [&](size_t at, std::string_view digits) { return digits.find(text[at]) != digits.npos; };
  return text.size() >= 4 && text.starts_with("\\x") && is_one_of(2, "89ABCDEF") && is_one_of(3, "0123456789ABCDEF");
}

size_t end_of(const std::vector<ShownToken>& shown) {
  size_t end = 0;
  for (const ShownToken& token : shown) end = std::max(end, token.end);
  return end;
}

// Tokens that the tokenizer has, after those that are shown already.
void add_known(const Tokenizer& tokenizer, std::span<const int32_t> ids, std::vector<ShownToken>& shown) {
  const DisplaySpans spans = display_spans(tokenizer, ids);
  const size_t start = end_of(shown);
  for (size_t i = 0; i < ids.size(); ++i) {
    ShownToken token{.id = ids[i], .continues = spans.continues(i)};
    const DisplaySpan& span = spans.spans[spans.span_of[i]];
    if (!token.continues) {
      token.begin = start + span.begin;
      token.end = start + span.end;
      // A span that ends inside a character is shown as bytes.
      const bool broken = span.text.find(kReplacementCharacter) != std::string::npos;
      std::string bytes;
      for (size_t t = 0; broken && t < span.token_count; ++t) bytes += tokenizer.bytes_of(ids[span.first_token + t]);
      token.text = broken ? by_bytes(bytes) : span.text;
      if (token.text.empty()) token.text = tokenizer.token(ids[i]);
    }
    shown.push_back(std::move(token));
  }
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  if (!tokenizer.has(id)) return fmt::format("#{}", id);  // models may have more rows than there are tokens
  return tokenizer.is_special(id) ? std::string(tokenizer.token(id)) : by_bytes(tokenizer.bytes_of(id));
}

std::string with_part_signs(std::string_view text) {
  std::string out;
  for (bool before = false; !text.empty();) {
    const bool byte = starts_with_byte(text);
    if (!byte) out += text.front();
    if (byte && !before) out += kPartOfCharacter;
    text.remove_prefix(byte ? 4 : 1);
    before = byte;
  }
  return out;
}

std::vector<ShownToken> shown_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<ShownToken> shown;
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin;
    while (end < ids.size() && tokenizer.has(ids[end])) ++end;
    if (end > begin) add_known(tokenizer, ids.subspan(begin, end - begin), shown);
    if (end < ids.size()) {  // models may have more rows than there are tokens
      const size_t at = end_of(shown);
      shown.push_back({.id = ids[end], .text = fmt::format("#{}", ids[end]), .begin = at, .end = at});
      ++end;
    }
    begin = end;
  }
  return shown;
}

ShownGuess::ShownGuess(const Tokenizer& tokenizer, std::span<const int32_t> before) : tokenizer_(tokenizer) {
  constexpr size_t kMostBytes = 4;  // of one character, so at most so many tokens
  std::string bytes;
  for (size_t i = before.size() - std::min(before.size(), kMostBytes); i < before.size(); ++i) {
    bytes += tokenizer.has(before[i]) ? tokenizer.bytes_of(before[i]) : "";
  }
  for (size_t length = std::min(bytes.size(), kMostBytes - 1); length > 0; --length) {
    const std::string_view end = std::string_view(bytes).substr(bytes.size() - length);
    if (!is_utf8_prefix(end) || utf8_length(end) > 0) continue;
    begun_ = end;
    return;
  }
}

std::string ShownGuess::text(int32_t id) const {
  if (!tokenizer_.has(id)) return fmt::format("#{}", id);  // models may have more rows than there are tokens
  const std::string bytes = tokenizer_.bytes_of(id);
  if (bytes.empty()) return std::string(tokenizer_.token(id));
  if (!begun_.empty() && is_utf8(begun_ + bytes)) return begun_ + bytes;
  return by_bytes(bytes);
}

}  // namespace qkv

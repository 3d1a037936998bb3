#include "text/tokenizer/pipeline/matcher.h"

#include <utility>

#include "text/unicode/characters.h"

namespace qkv {
namespace {

void scan_string(std::string_view text, std::string_view wanted, Matcher::Found found) {
  size_t from = 0;
  while (!wanted.empty()) {
    const size_t at = text.find(wanted, from);
    if (at == text.npos) break;
    if (at > from) found(from, at, false);
    from = at + wanted.size();
    found(at, from, true);
  }
  if (from < text.size()) found(from, text.size(), false);
}

void scan_characters(std::string_view text, bool (*wanted)(Char), Matcher::Found found) {
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (wanted(c)) {
      if (at > from) found(from, at, false);
      from = at + c.bytes;
      found(at, from, true);
    }
    at += c.bytes;
  }
  if (from < text.size()) found(from, text.size(), false);
}

void scan_regex(std::string_view text, const Regex& regex, Matcher::Found found) {
  size_t from = 0;
  regex.find_all(text, [&](size_t begin, size_t end) {
    if (begin > from) found(from, begin, false);
    found(begin, end, true);
    from = end;
  });
  if (from < text.size()) found(from, text.size(), false);
}

}  // namespace

Matcher Matcher::string(std::string_view wanted) {
  return Matcher(std::string(wanted));
}

Matcher Matcher::regex(std::string_view expression, std::string_view what) {
  Regex regex(expression, what);
  if (const auto known = known_pattern(expression)) return Matcher(Known{*known, std::move(regex)});
  return Matcher(std::move(regex));
}

Matcher Matcher::characters(bool (*wanted)(Char)) {
  return Matcher(Wanted(wanted));
}

std::optional<Pattern> Matcher::pattern() const {
  if (const Known* known = std::get_if<Known>(&wanted_)) return known->pattern;
  return std::nullopt;
}

void Matcher::scan(std::string_view text, Found found) const {
  if (const auto* string = std::get_if<std::string>(&wanted_)) return scan_string(text, *string, found);
  if (const auto* wanted = std::get_if<bool (*)(Char)>(&wanted_)) return scan_characters(text, *wanted, found);
  if (const auto* regex = std::get_if<Regex>(&wanted_)) return scan_regex(text, *regex, found);
  scan_regex(text, std::get<Known>(wanted_).regex, found);
}

}  // namespace qkv

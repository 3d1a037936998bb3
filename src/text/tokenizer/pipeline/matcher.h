// What a Split or Replace looks for in a text: a string, a regular expression, or characters of one kind.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/function_ref.h"
#include "text/tokenizer/pipeline/patterns.h"
#include "text/tokenizer/pipeline/regex.h"
#include "text/unicode/char_kind.h"

namespace qkv {

class Matcher {
 public:
  static Matcher string(std::string_view wanted);
  // A pattern that is known by its text is hand-written, any other goes through PCRE2.
  static Matcher regex(std::string_view expression, std::string_view what);
  static Matcher characters(bool (*wanted)(Char));

  using Found = FunctionRef<void(size_t begin, size_t end, bool is_match)>;

  // Matches and what lies between them, in order; together they cover the text.
  void scan(std::string_view text, Found found) const;

  // Set where splitting by this matcher, every part a piece, is the hand-written pattern.
  std::optional<Pattern> pattern() const;

 private:
  // The regular expression beside a known pattern tells matches from what lies between them.
  struct Known {
    Pattern pattern;
    Regex regex;
  };
  using Wanted = std::variant<std::string, Regex, Known, bool (*)(Char)>;

  explicit Matcher(Wanted wanted) : wanted_(std::move(wanted)) {}

  Wanted wanted_;
};

}  // namespace qkv

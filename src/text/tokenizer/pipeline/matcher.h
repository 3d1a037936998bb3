// The search pattern of a Split or Replace: a string, a regular expression, or a character class.
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
  // A known pattern runs as hand-written code, any other in PCRE2.
  static Matcher regex(std::string_view expression, std::string_view what);
  static Matcher characters(bool (*wanted)(Char));

  using Found = FunctionRef<void(size_t begin, size_t end, bool is_match)>;

  // Reports the matches and the gaps between them, in order; together they cover the text.
  void scan(std::string_view text, Found found) const;

  // Set if splitting by this matcher, with matches and gaps isolated, equals a hand-written pattern.
  std::optional<Pattern> pattern() const;

 private:
  // split_pattern() does not tell matches from gaps; the regular expression does.
  struct Known {
    Pattern pattern;
    Regex regex;
  };
  using Wanted = std::variant<std::string, Regex, Known, bool (*)(Char)>;

  explicit Matcher(Wanted wanted) : wanted_(std::move(wanted)) {}

  Wanted wanted_;
};

}  // namespace qkv

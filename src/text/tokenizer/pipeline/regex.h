// Regular expressions of tokenizer files, run by PCRE2 with limits. They are written for Oniguruma; syntax that means
// something else in PCRE2 is translated.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace qkv {

class Regex {
 public:
  // `what` names the source of the expression in error messages.
  Regex(std::string_view expression, std::string_view what);

  // Reports the matches in order. An empty match right after another match is skipped. Invalid UTF-8 matches nothing.
  // Throws if a match exceeds the step limit.
  void find_all(std::string_view text, FunctionRef<void(size_t begin, size_t end)> match) const;

 private:
  void find_in_utf8(std::string_view text, FunctionRef<void(size_t begin, size_t end)> match) const;

  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

// Translates an Oniguruma expression to the equivalent PCRE2 expression.
std::string to_pcre2(std::string_view oniguruma);

}  // namespace qkv

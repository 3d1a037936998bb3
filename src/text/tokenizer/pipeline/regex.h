// Regular expressions of tokenizer files, run by PCRE2 with limits. They are written for Oniguruma; where it reads a
// sign differently, the expression is translated.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace qkv {

class Regex {
 public:
  // `what` says in error texts where the expression comes from.
  Regex(std::string_view expression, std::string_view what);

  // The matches in order. An empty match behind another match is left out. Bytes that are not UTF-8 match nothing.
  // Throws when a match takes more steps than a real tokenizer needs.
  void find_all(std::string_view text, FunctionRef<void(size_t begin, size_t end)> match) const;

 private:
  void find_in_utf8(std::string_view text, FunctionRef<void(size_t begin, size_t end)> match) const;

  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

// The expression as PCRE2 must see it to match what Oniguruma would.
std::string to_pcre2(std::string_view oniguruma);

}  // namespace qkv

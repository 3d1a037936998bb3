// The texts of JSON strings.
//
// A string has one spelling: the characters that must be escaped as \" \\ \b \f \n \r \t, everything else as itself.
// So equal strings are equal bytes, and there is no \u and no lone surrogate. Other control characters never appear.
#pragma once

#include <optional>

#include "infer/grammar/dfa.h"

namespace qkv::grammar {

struct Lengths {  // in code points
  size_t least = 0;
  std::optional<size_t> most = {};
  bool operator==(const Lengths&) const = default;
};
constexpr size_t kLongestCounted = 4096;

// Well-formed UTF-8 without the control characters that have no short escape: what a string may say.
Dfa string_contents(Lengths lengths, Budget& budget);

// The characters that a string spells as themselves, any number of them. State 0 is between characters, where it accepts.
const Dfa& plain_text();

// The JSON strings that say these contents, quotes included.
Dfa json_strings(const Dfa& contents, Budget& budget);

// The same without the first quote: what follows it.
Dfa json_string_ends(const Dfa& contents, Budget& budget);

std::string json_string(std::string_view contents);

}  // namespace qkv::grammar

// Regular expressions as JSON Schema's "pattern" has them: a subset of ECMA 262 that is regular.
//
// Literals, classes, . groups, | and counted repeats, ^ and $. Where engines disagree (\d of Python has all digits of
// Unicode, that of ECMA only ASCII's) a class has what all of them have, so that any of them accepts the text.
// Backreferences, assertions other than ^ and $, and \p{} are Errors.
#pragma once

#include <string_view>

#include "infer/grammar/dfa.h"

namespace qkv::grammar {

// The strings, as UTF-8, in which the pattern is found. `at` is the pattern's place, for errors.
Dfa pattern_matches(std::string_view pattern, std::string_view at, Budget& budget);

// Formats with a fixed syntax: date, time, date-time (RFC 3339), uuid, ipv4, email. Empty view: not known.
std::string_view format_pattern(std::string_view format);
inline constexpr const char* kFormats = "date, time, date-time, uuid, ipv4 and email";

}  // namespace qkv::grammar

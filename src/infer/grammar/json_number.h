// The texts of JSON numbers between bounds.
//
// At most 15 digits, so that numbers with different texts are different doubles, and a number inside its bounds as
// text is inside them as a double. An exponent (of two digits: always finite) only where there are no bounds.
#pragma once

#include <cstdint>
#include <optional>

#include "infer/grammar/dfa.h"

namespace qkv::grammar {

struct Bound {
  double at = 0;
  bool exclusive = false;
};

struct Numbers {
  bool integer = false;
  std::optional<Bound> least = {}, most = {};
  int64_t multiple_of = 1;  // more than 1: integers only
};
constexpr int64_t kLargestDivisor = 1000;

Dfa json_numbers(const Numbers& numbers, Budget& budget);  // empty if there is none

// The tighter of two bounds from below; from above with their signs turned.
Bound tighter_least(const Bound& a, const Bound& b);

}  // namespace qkv::grammar

// A regular expression as a tree.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "infer/grammar/budget.h"
#include "infer/grammar/code_set.h"

namespace qkv::grammar {

struct PatternNode {
  enum class Kind { sequence, either, one_of, repeat, start, end } kind = Kind::sequence;
  std::vector<PatternNode> parts = {};  // of a sequence (none: the empty text), an alternation; one of a repeat
  CodeSet set = {};
  size_t least = 0;
  std::optional<size_t> most = {};  // none: without end
};

constexpr size_t kMostRepeats = 1000;

// What matches the empty text alone is left out, and so are its repeats: `(?:(?:){1000}){1000}` is an empty sequence.
// Throws an Error with the position if the pattern is malformed or not supported.
PatternNode parse_pattern(std::string_view pattern, std::string_view at, Budget& budget);

}  // namespace qkv::grammar

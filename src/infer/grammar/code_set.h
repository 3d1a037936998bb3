// Sets of code points, and the UTF-8 of their ranges.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/function_ref.h"

namespace qkv::grammar {

class CodeSet {
 public:
  struct Range {
    uint32_t low, high;  // both included
  };
  CodeSet() = default;
  CodeSet(std::initializer_list<Range> ranges);

  void add(Range range);
  void add(const CodeSet& other);
  CodeSet complement() const;                                   // of all code points but surrogates
  const std::vector<Range>& ranges() const { return ranges_; }  // sorted, apart

 private:
  std::vector<Range> ranges_;
};

// Calls on_sequence with byte ranges, one for each byte of a character; together they are the UTF-8 of the set.
struct ByteRange {
  uint8_t low, high;
};
void utf8_ranges(const CodeSet& set, FunctionRef<void(const std::vector<ByteRange>&)> on_sequence);

// What \d, \w and \s are: in every engine (narrow), and in any (wide).
struct ClassSets {
  CodeSet narrow, wide;
};
const ClassSets& digit_class();
const ClassSets& word_class();
const ClassSets& space_class();

}  // namespace qkv::grammar

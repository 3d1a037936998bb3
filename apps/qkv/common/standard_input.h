// Standard input as commands read it: within limits, so that input without an end is an Error and not all memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace qkv::app {

// All of it. More than kLargestInput bytes is an Error.
inline constexpr size_t kLargestInput = size_t{64} << 20;
std::string read_standard_input();

// Its lines, without their ends. A line of more than kLongestLine bytes is an Error that says which.
class InputLines {
 public:
  static constexpr size_t kLongestLine = size_t{1} << 20;

  std::optional<std::string> next();
  // Whether next() would return at once: a line, a part of one or the end is there.
  bool ready() const;

 private:
  bool refill();

  std::string block_;
  size_t begin_ = 0;  // of what is unread
  int64_t line_ = 0;  // read last, from 1
};

}  // namespace qkv::app

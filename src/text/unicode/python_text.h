// String methods with Python's semantics, for well-formed UTF-8: positions count characters; white space and case
// follow Unicode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

bool is_python_space(int32_t code);

size_t python_length(std::string_view text);  // in characters
std::vector<std::string_view> python_characters(std::string_view text);
size_t bytes_of_characters(std::string_view text, size_t characters);  // byte length of the first `characters` ones

enum class Ends { left, right, both };
// Strips any of `characters`, or white space if not given.
std::string_view python_strip(std::string_view text, std::optional<std::string_view> characters, Ends ends);

// Splits at the separator, or at white space if there is none, at most max_splits times, from the left or the right.
struct PythonSplit {
  std::optional<std::string_view> separator = {};
  size_t max_splits = SIZE_MAX;
  Ends from = Ends::left;
};
std::vector<std::string_view> python_split(std::string_view text, const PythonSplit& options);

enum class LineEnds { drop, keep };
std::vector<std::string_view> python_lines(std::string_view text, LineEnds ends);

std::string python_lower(std::string_view text);
std::string python_upper(std::string_view text);
std::string python_capitalize(std::string_view text);
std::string python_title(std::string_view text);

}  // namespace qkv

// What Python's strings can do, for well-formed UTF-8: positions count characters, white space and case are Unicode's.
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
size_t bytes_of_characters(std::string_view text, size_t characters);  // how long its first characters are

enum class Ends { left, right, both };
// Without characters, white space is stripped.
std::string_view python_strip(std::string_view text, std::optional<std::string_view> characters, Ends ends);

// Cut at the separator, or at white space where none is given, at most this often, from the left or from the right.
struct PythonSplit {
  std::optional<std::string_view> separator = {};
  size_t most = SIZE_MAX;
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

// Drawing on a terminal: heat, bars, columns. Colour only where there is one; the same shapes without.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::app {

int terminal_columns();  // what COLUMNS says, or the terminal at standard output; 80 where neither is known

std::string spaces(int count);  // "" below 0

// A text in lines of at most so many cells, broken at spaces and between Chinese characters; a word that is longer than
// a line is broken anywhere. Line breaks of the text stay.
std::vector<std::string> wrap(std::string_view text, int cells);
// The same with `indent` spaces before each line and a line break after it.
std::string wrapped(std::string_view text, int cells, int indent = 0);

// A text in so many cells, cut with an ellipsis or filled with spaces; Chinese characters take two. Control characters
// are shown, not sent (base/printable.h).
std::string in_cells(std::string_view text, int cells);
std::string in_cells_right(std::string_view text, int cells);

// A number from 0 to 1 as heat, so many cells wide: a colour, or one of " .:-=+*#%@".
std::string heat(double share, int cells = 2);
// The same with a text upon it.
std::string on_heat(double share, std::string_view text, int cells);

// A bar of at most so many cells, in eighths of one.
std::string bar(double share, int cells);
// From an axis in the middle, for a share from -1 to 1: negative ones to the left, positive ones to the right. So many
// cells on each side.
std::string signed_bar(double share, int cells);

// A curve in at most so many cells, against its own range; the highest value of those that share a cell.
std::string sparkline(const std::vector<double>& values, int cells);

enum class Ink { plain, dim, bold, red, green, yellow, blue, magenta, cyan };
std::string inked(Ink ink, std::string_view text);

}  // namespace qkv::app

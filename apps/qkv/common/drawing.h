// Drawing on a terminal: heat, bars, columns. Colour only where there is one; the same shapes without.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::app {

int terminal_columns();  // of standard output; 80 where it is no terminal

// A text in so many cells, cut with an ellipsis or filled with spaces; Chinese characters take two. Control characters
// are shown, not sent.
std::string in_cells(std::string_view text, int cells);
std::string in_cells_right(std::string_view text, int cells);

// A number from 0 to 1 as heat, so many cells wide: a colour, or one of " .:-=+*#%@".
std::string heat(double share, int cells = 2);
// The same with a text upon it.
std::string on_heat(double share, std::string_view text, int cells);

// A bar of at most so many cells, in eighths where the terminal takes them.
std::string bar(double share, int cells);

// A curve in at most so many cells, against its own range; the highest value of those that share a cell.
std::string sparkline(const std::vector<double>& values, int cells);

enum class Ink { plain, dim, bold, red, green, yellow, blue, magenta, cyan };
std::string inked(Ink ink, std::string_view text);

}  // namespace qkv::app

// Width of text in terminal cells: Chinese characters take two.
#pragma once

#include <string_view>

namespace qkv {

int display_width(std::string_view utf8);

// The longest prefix of at most `cells` cells.
std::string_view fit_width(std::string_view utf8, int cells);

}  // namespace qkv

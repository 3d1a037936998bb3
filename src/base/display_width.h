// How many terminal cells a text takes: Chinese characters take two.
#pragma once

#include <string_view>

namespace qkv {

int display_width(std::string_view utf8);

// The longest beginning that takes at most so many cells.
std::string_view fit_width(std::string_view utf8, int cells);

}  // namespace qkv

// Replacing substrings.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// Replaces every `from` in the text by `to`, from left to right.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace qkv

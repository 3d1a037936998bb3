// Plain replacing in a string.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// Every `from` in the text becomes `to`, from left to right.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace qkv

// Escapes names from files for error texts.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// 'name' in quotes, with control characters escaped (a file must not control the terminal) and long names cut.
std::string printable(std::string_view name);

}  // namespace qkv

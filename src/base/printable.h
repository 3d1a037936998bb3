// Names that come from a file, shown safely in error texts.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// 'name' with its control characters escaped, so that a file cannot steer a terminal, and the end of a long one left
// out.
std::string printable(std::string_view name);

}  // namespace qkv

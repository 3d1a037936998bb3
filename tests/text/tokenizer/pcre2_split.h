// Splits a text with PCRE2 directly: the pieces of a Split with isolated matches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::test {

using Pieces = std::vector<std::string>;

// UTF and UCP. The text must be valid UTF-8.
Pieces pcre2_split(std::string_view regex, std::string_view text);

}  // namespace qkv::test

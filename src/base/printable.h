// Text from elsewhere (files, models, arguments) as it may be shown: it must not steer a terminal or fill the screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qkv {

// Most characters of one value in a message, and of a whole message.
inline constexpr size_t kLongestValue = 200, kLongestMessage = 600;

// Control characters, line and paragraph separators and what reorders text (bidirectional embeddings, overrides and
// isolates) as \u001b, bytes that are not UTF-8 as \xff. Everything else stays, tabs and line breaks too if they may.
// Escaping twice changes nothing, and escaped JSON is the same JSON.
enum class LineBreaks { stay, escaped };
std::string escaped(std::string_view text, LineBreaks breaks = LineBreaks::stay);

// A text of more characters than the limit is cut in the middle, and says how many bytes it has. The result is within
// the limit.
std::string shortened(std::string_view text, size_t limit);

// 'name' in quotes, on one line, escaped and cut.
std::string printable(std::string_view name);

}  // namespace qkv

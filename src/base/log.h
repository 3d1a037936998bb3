// Log lines on stderr.
#pragma once

#include <string_view>

namespace qkv {

enum class Log { info, warn, error };

// One write per call, so lines of several threads do not mix. The text is escaped (base/printable.h); line breaks stay.
void log_line(Log level, std::string_view text);

// From now on a line that nobody reads (a full pipe) is dropped after a second, and those after it at once; the next one
// that is read says how many. A server must not stop answering because its log does.
void drop_unread_lines();

// A warning the first time a key is seen in this process. Keys come from the code, never from input.
void warn_once(std::string_view key, std::string_view text);

}  // namespace qkv

// Lines for people, on stderr.
#pragma once

#include <string_view>

namespace qkv {

enum class Log { info, warn, error };

// One write per call: lines of several threads never mix.
void log_line(Log level, std::string_view text);

// A warning the first time a key is seen in this process. Keys are chosen by the code, not by its input.
void warn_once(std::string_view key, std::string_view text);

}  // namespace qkv

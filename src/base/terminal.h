// What a terminal can do.
#pragma once

namespace qkv {

// A terminal that moves its cursor: TERM names one, and not "dumb".
bool may_move_cursor(int fd);

// The same, and NO_COLOR (no-color.org) is not set, or empty.
bool may_colour(int fd);

}  // namespace qkv

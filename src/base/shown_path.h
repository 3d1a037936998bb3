// Names for messages: what is written under a temporary name is named by the name it is meant to get.
#pragma once

#include <string>

namespace qkv {

// From here on messages of Errors say `shown` for `path`; nothing if `shown` is empty. A failed write keeps its entry,
// as a message may be made after the temporary is gone.
void show_path_as(const std::string& path, const std::string& shown);

// The text with every such path replaced.
std::string with_shown_paths(std::string text);

}  // namespace qkv

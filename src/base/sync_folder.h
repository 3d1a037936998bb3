// The last part of every write that must outlive a power cut.
#pragma once

#include <string>

namespace qkv {

// Names made or changed in the folder stay. 0, or an errno.
int sync_folder(const std::string& folder);

}  // namespace qkv

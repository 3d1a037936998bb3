// fsync of a folder: the last step of a durable write. And the words of an errno.
#pragma once

#include <string>

namespace qkv {

// Makes new and renamed entries of the folder durable. 0, or an errno.
int sync_folder(const std::string& folder);

std::string errno_text(int code);

}  // namespace qkv

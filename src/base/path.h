// What is at a path, and what to do when the system refuses.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qkv {

enum class PathKind { absent, file, folder, other };  // other: a pipe, a device, a socket

// Follows links. Absent means that there is no such name; a name that cannot be looked up (no permission, links in a
// circle, too long) is an Error.
PathKind kind_of_path(const std::filesystem::path& path);
bool is_there(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// The entries of a folder, in order of their names.
std::vector<std::filesystem::path> folder_entries(const std::filesystem::path& folder);

// The advice for an errno.
std::string errno_hint(int code);

}  // namespace qkv

// Atomic replacement of links and folders: readers see the old or the new, also after a power cut.
#pragma once

#include <filesystem>

namespace qkv {

// `link` becomes a symbolic link to `target`, relative to the link's folder. It must be a link already or not exist.
void replace_link(const std::filesystem::path& link, const std::filesystem::path& target);

// Renames the folder `fresh` to `name`, in the same parent folder; the old `name` is removed.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& name);

}  // namespace qkv

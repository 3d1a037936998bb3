// Names that change what they stand for in one step: whoever looks finds the old or the new, also after a power cut.
#pragma once

#include <filesystem>

namespace qkv {

// `link` becomes a symbolic link to `target`, which is read from the link's folder. What the name held before must be a
// link too, or nothing.
void replace_link(const std::filesystem::path& link, const std::filesystem::path& target);

// The folder `fresh`, a neighbour of `name`, takes its name; what `name` held before is removed.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& name);

}  // namespace qkv

// The file of the running program.
#pragma once

#include <filesystem>

namespace qkv {

// What /proc says. Where that is not mounted (chroots, sandboxes), what the kernel was asked to start, found from the
// folder of the first call. Empty if that is no file by now. Tests read /proc below a root of their own.
std::filesystem::path program_path(const std::filesystem::path& root = "/");

}  // namespace qkv

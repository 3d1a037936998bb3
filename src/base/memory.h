// How much memory this process can still allocate.
#pragma once

#include <cstdint>
#include <filesystem>

namespace qkv {

// The minimum of free memory, cgroup limits and the limit on the address space. Cached files count as free. Reads below
// root, so that tests can provide their own files; a missing file means no limit.
int64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace qkv

// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <filesystem>

namespace qkv {

// The least of what the machine has free, what our control groups leave, and the limit on our address space. What the
// system would give back at once (cached files) counts as free. Reads below root, so that tests can build a system of
// their own; where nothing is said there is no limit.
int64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace qkv

// How much memory this process uses and can still allocate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace qkv {

// The minimum of free memory, cgroup limits and the limit on the address space. Cached files count as free. Reads below
// root, so that tests can provide their own files; a missing file means no limit. Without /proc the kernel is asked, which
// does not tell cached files from used memory: all memory but our own counts as free.
int64_t available_memory(const std::filesystem::path& root = "/");

// From here on a failed allocation notes how much was in use, before bad_alloc unwinds the stack and frees it.
void note_failed_allocations();

// What was in use when an allocation failed (or is now, if that is more), and the limit it met.
std::string memory_text();

std::string in_gibibytes(int64_t bytes);

inline constexpr const char* kMemoryHint =
    "use a smaller batch, a shorter context, a smaller model or fewer threads; or raise the limit, if there is one";

}  // namespace qkv

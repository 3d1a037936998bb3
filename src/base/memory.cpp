#include "base/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "base/cpus.h"

namespace qkv {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The number after `word` in a file of "word number" lines; without a word, the file is one number.
std::optional<int64_t> number_in(const std::filesystem::path& path, std::string_view word) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(word)) continue;
    const size_t at = std::min(line.find_first_not_of(" \t", word.size()), line.size());
    int64_t number = 0;
    const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), number);
    if (error == std::errc() && number >= 0) return number;
  }
  return std::nullopt;
}

// Free memory of a cgroup: limit minus usage, without cached files.
int64_t left_in(const std::filesystem::path& folder, bool v2) {
  const auto limit = number_in(folder / (v2 ? "memory.max" : "memory.limit_in_bytes"), "");
  const auto used = number_in(folder / (v2 ? "memory.current" : "memory.usage_in_bytes"), "");
  if (!limit || !used) return kNoLimit;
  const int64_t cached = number_in(folder / "memory.stat", v2 ? "inactive_file " : "total_inactive_file ").value_or(0);
  return std::max<int64_t>(*limit - *used + std::min(cached, *used), 0);
}

// Free address space, if it is limited.
int64_t left_of_addresses(const std::filesystem::path& root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const int64_t used = number_in(root / "proc/self/status", "VmSize:").value_or(0) << 10;
  return std::max<int64_t>(static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kNoLimit)) - used, 0);
}

}  // namespace

int64_t available_memory(const std::filesystem::path& root) {
  const auto free = number_in(root / "proc/meminfo", "MemAvailable:");
  int64_t left = std::min(free ? *free << 10 : kNoLimit, left_of_addresses(root));
  for_each_cgroup(root, "memory",
                  [&](const std::filesystem::path& folder, bool v2) { left = std::min(left, left_in(folder, v2)); });
  return left;
}

}  // namespace qkv

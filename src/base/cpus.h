// How many CPUs this process may use: affinity mask and cgroup quota (containers, batch systems).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace qkv {

// CPU numbers in the affinity mask of the calling thread; empty if unknown.
std::vector<int> allowed_cpus();

// The smallest quota of our control group and its parents in whole CPUs, rounded up; nothing if there is none.
// Reads below root, so that tests can provide their own files.
std::optional<int> cpu_quota(const std::filesystem::path& root = "/");

inline constexpr int kMostThreads = 1024;

// One for each CPU we may use: at least 1, at most kMostThreads.
int default_threads();

// Parsers of the files cpu_quota reads. Malformed text means no quota.
std::optional<int> parse_cpu_max(std::string_view text);                              // cgroup v2:  "150000 100000"
std::optional<int> parse_cfs_quota(std::string_view quota, std::string_view period);  // cgroup v1

// Where a controller is mounted, and our group below that: "" or "/a/b".
struct CgroupFolder {
  std::string mount, group;
  bool v2 = false;
  bool operator==(const CgroupFolder&) const = default;
};
std::vector<CgroupFolder> find_cgroups(std::string_view proc_self_cgroup, std::string_view proc_self_mountinfo,
                                       std::string_view controller = "cpu");

// Calls f(folder, v2) for our group and each of its parents; each may set a limit. Without /proc for the root that is seen.
void for_each_cgroup(const std::filesystem::path& root, std::string_view controller,
                     FunctionRef<void(const std::filesystem::path& folder, bool v2)> f);

}  // namespace qkv

#include "base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/file.h"

namespace qkv {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool lists(std::string_view names, std::string_view wanted) {
  const auto parts = split(names, ',');
  return std::find(parts.begin(), parts.end(), wanted) != parts.end();
}

std::optional<int64_t> parse_positive(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value <= 0) return std::nullopt;
  return value;
}

std::string read_or_empty(const std::filesystem::path& path) {
  try {
    return read_file(path, size_t{16} << 20);
  } catch (const Error&) {
    return {};  // no cgroups, or hidden
  }
}

// The group as seen from a mount that shows only the tree below mounted_root.
std::string below(std::string_view group, std::string_view mounted_root) {
  if (mounted_root != "/" && group.starts_with(mounted_root) &&
      (group.size() == mounted_root.size() || group[mounted_root.size()] == '/')) {
    group.remove_prefix(mounted_root.size());
  } else if (mounted_root != "/") {
    group = "";  // a container that sees only its own group
  }
  return group == "/" ? std::string() : std::string(group);
}

}  // namespace

std::optional<int> parse_cfs_quota(std::string_view quota, std::string_view period) {
  const auto used = parse_positive(quota);  // -1: no limit
  const auto every = parse_positive(period);
  if (!used || !every) return std::nullopt;
  const int64_t cpus = *used / *every + (*used % *every != 0 ? 1 : 0);
  return static_cast<int>(std::min<int64_t>(cpus, std::numeric_limits<int>::max()));
}

std::optional<int> parse_cpu_max(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == text.npos) return std::nullopt;
  return parse_cfs_quota(text.substr(0, space), text.substr(space + 1));
}

std::vector<CgroupFolder> find_cgroups(std::string_view proc_self_cgroup, std::string_view proc_self_mountinfo,
                                       std::string_view controller) {
  std::optional<std::string_view> group_v1, group_v2;
  for (const std::string_view line : split(proc_self_cgroup, '\n')) {  // "4:cpu,cpuacct:/a/b" or "0::/a/b"
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) group_v2 = line.substr(second + 1);
    if (lists(controllers, controller)) group_v1 = line.substr(second + 1);
  }

  std::vector<CgroupFolder> found;
  for (const std::string_view line : split(proc_self_mountinfo, '\n')) {
    // "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu", with optional fields before the dash
    const auto fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    const std::string_view type = dash[1], options = dash[3];
    if (type == "cgroup2" && group_v2) {
      found.push_back({std::string(fields[4]), below(*group_v2, fields[3]), true});
    } else if (type == "cgroup" && group_v1 && lists(options, controller)) {
      found.push_back({std::string(fields[4]), below(*group_v1, fields[3]), false});
    }
  }
  return found;
}

void for_each_cgroup(const std::filesystem::path& root, std::string_view controller,
                     FunctionRef<void(const std::filesystem::path& folder, bool v2)> f) {
  const std::string groups = read_or_empty(root / "proc/self/cgroup");
  const std::string mounts = read_or_empty(root / "proc/self/mountinfo");
  if (groups.empty() && mounts.empty()) {  // no /proc: where containers and namespaces have their own group
    f(root / "sys/fs/cgroup", true);
    f(root / "sys/fs/cgroup" / controller, false);
  }
  for (const CgroupFolder& cgroup : find_cgroups(groups, mounts, controller)) {
    const std::filesystem::path mount = root / std::filesystem::path(cgroup.mount).relative_path();
    std::string group = cgroup.group;
    while (true) {
      f(mount / std::filesystem::path(group).relative_path(), cgroup.v2);
      if (group.empty()) break;
      group.erase(std::min(group.rfind('/'), group.size()));
    }
  }
}

std::optional<int> cpu_quota(const std::filesystem::path& root) {
  std::optional<int> smallest;
  for_each_cgroup(root, "cpu", [&](const std::filesystem::path& folder, bool v2) {
    const auto quota =
        v2 ? parse_cpu_max(read_or_empty(folder / "cpu.max"))
           : parse_cfs_quota(read_or_empty(folder / "cpu.cfs_quota_us"), read_or_empty(folder / "cpu.cfs_period_us"));
    if (quota) smallest = std::min(smallest.value_or(*quota), *quota);
  });
  return smallest;
}

std::vector<int> allowed_cpus() {
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {  // EINVAL: the kernel knows more CPUs than the set
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) return {};
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    std::vector<int> allowed;
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !known && errno == EINVAL;
    for (int cpu = 0; known && cpu < cpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) allowed.push_back(cpu);
    }
    CPU_FREE(set);
    if (!too_small) return allowed;
  }
  return {};
}

int default_threads() {
  const std::vector<int> allowed = allowed_cpus();
  const int cpus = static_cast<int>(allowed.empty() ? std::thread::hardware_concurrency() : allowed.size());
  return std::clamp(std::min(cpus, cpu_quota().value_or(cpus)), 1, kMostThreads);
}

}  // namespace qkv

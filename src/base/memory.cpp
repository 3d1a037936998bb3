#include "base/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <string>

#include "base/cpus.h"

namespace qkv {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 2;  // callers add to it

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

int64_t address_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kNoLimit));
}

// The most that was resident so far.
int64_t peak_resident() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} << 10 : 0;
}

// Memory of the machine without our own, for where /proc is not mounted (chroots, sandboxes). The system call does not say
// how much of the rest holds cached files, which count as free, so all of it does.
int64_t left_of_machine() {
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return kNoLimit;
  return std::max<int64_t>(static_cast<int64_t>(info.totalram) * info.mem_unit - peak_resident(), 0);
}

// Free address space, if it is limited.
int64_t left_of_addresses(const std::filesystem::path& root) {
  const int64_t limit = address_limit();
  if (limit == kNoLimit) return kNoLimit;
  const auto used = number_in(root / "proc/self/status", "VmSize:");
  return std::max<int64_t>(limit - (used ? *used << 10 : peak_resident()), 0);
}

struct Used {
  int64_t addresses = 0, resident = 0;  // without /proc no addresses, and the most that was resident
};
std::atomic<int64_t> addresses_at_failure{0}, resident_at_failure{0};

// Allocates nothing.
Used used_now() {
  std::array<char, 128> text{};
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? 0 : ::read(fd, text.data(), text.size());
  if (fd >= 0) ::close(fd);
  const char* const end = text.data() + std::max<ssize_t>(got, 0);
  Used pages;  // "total resident ..."
  const auto total = std::from_chars(text.data(), end, pages.addresses);
  if (total.ec == std::errc() && total.ptr < end) std::from_chars(total.ptr + 1, end, pages.resident);
  if (pages.resident == 0) return {.resident = peak_resident()};
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  return {pages.addresses * page, pages.resident * page};
}

void note_and_throw() {
  const Used used = used_now();
  addresses_at_failure = used.addresses;
  resident_at_failure = used.resident;
  throw std::bad_alloc();
}

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

void note_failed_allocations() {
  std::set_new_handler(note_and_throw);
}

std::string memory_text() {
  const Used now = used_now();
  const Used used{std::max(now.addresses, addresses_at_failure.load()),
                  std::max(now.resident, resident_at_failure.load())};
  const int64_t limit = address_limit();
  if (limit != kNoLimit) {
    const int64_t known = std::max(used.addresses, used.resident);
    return fmt::format("the address space is limited to {} (ulimit -v), of which {} were in use", mebibytes(limit),
                       mebibytes(known));
  }
  const int64_t left = available_memory();
  return fmt::format("{} were in use{}", mebibytes(used.resident),
                     left == kNoLimit ? "" : fmt::format(" and {} are free", mebibytes(left)));
}

int64_t available_memory(const std::filesystem::path& root) {
  const auto free = number_in(root / "proc/meminfo", "MemAvailable:");
  int64_t left = std::min(free ? *free << 10 : left_of_machine(), left_of_addresses(root));
  for_each_cgroup(root, "memory",
                  [&](const std::filesystem::path& folder, bool v2) { left = std::min(left, left_in(folder, v2)); });
  return left;
}

std::string in_gibibytes(int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 30));
}

}  // namespace qkv

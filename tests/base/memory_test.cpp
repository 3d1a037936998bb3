#include "base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/temp_folder.h"

namespace qkv {
namespace {

TEST(AvailableMemory, IsTheLeastOfMachineAndGroups) {
  const TempFolder root;
  root.write("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    4000 kB\n");
  EXPECT_EQ(available_memory(root.path()), 4000 << 10);

  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("sys/fs/cgroup/a/b/memory.current", "12345\n");
  EXPECT_EQ(available_memory(root.path()), 4000 << 10) << "no limit";

  root.write("sys/fs/cgroup/a/memory.max", "1000000\n");  // a parent's limit holds too
  root.write("sys/fs/cgroup/a/memory.current", "300000\n");
  root.write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\nactive_file 7\n");
  EXPECT_EQ(available_memory(root.path()), 1000000 - 300000 + 100000) << "cached files can go";

  root.write("sys/fs/cgroup/a/memory.current", "2000000\n");
  root.write("sys/fs/cgroup/a/memory.stat", "");
  EXPECT_EQ(available_memory(root.path()), 0);
}

TEST(AvailableMemory, OldControlGroupsAreReadToo) {
  const TempFolder root;
  root.write("proc/meminfo", "MemAvailable: 4000 kB\n");
  root.write("proc/self/cgroup", "3:memory:/job\n2:cpu:/other\n");
  root.write("proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "500000\n");
  root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "400000\n");
  root.write("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 50000\n");
  EXPECT_EQ(available_memory(root.path()), 150000);
}

// Where /proc is not mounted, as in a chroot.
TEST(AvailableMemory, WithoutProcIsTheMachinesWithoutOurOwn) {
  const TempFolder root;
  const int64_t machine = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE), left = available_memory(root.path());
  EXPECT_LT(left, machine);
  EXPECT_GT(left, machine / 2) << "this test needs little";
}

TEST(AvailableMemory, WithoutProcIsOfTheGroupThatIsSeen) {
  const TempFolder root, old;
  root.write("sys/fs/cgroup/memory.max", "1000000\n");
  root.write("sys/fs/cgroup/memory.current", "300000\n");
  EXPECT_EQ(available_memory(root.path()), 700000);
  old.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  old.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "400000\n");
  EXPECT_EQ(available_memory(old.path()), 100000);
}

TEST(AvailableMemory, OfThisMachineIsSomething) {
  EXPECT_GT(available_memory(), 1 << 20);
}

}  // namespace
}  // namespace qkv

#include "base/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/temp_folder.h"

namespace qkv {
namespace {

TEST(Cpus, CpuMaxTexts) {
  const struct {
    std::string_view text;
    std::optional<int> cpus;
  } kCases[] = {
      {"max 100000\n", std::nullopt},
      {"100000 100000\n", 1},
      {"150000 100000\n", 2},
      {"200000 100000", 2},
      {"50000 100000\n", 1},
      {"1000 1000000\n", 1},
      {"6400000 100000\n", 64},
      {"400001 100000\n", 5},
      {"9223372036854775807 1\n", 2147483647},
      {"", std::nullopt},
      {"max", std::nullopt},
      {"100000", std::nullopt},
      {"100000 0\n", std::nullopt},
      {"0 100000\n", std::nullopt},
      {"-1 100000\n", std::nullopt},
      {"99999999999999999999 100000\n", std::nullopt},
      {"100000 100000 5\n", std::nullopt},
      {"1e5 100000\n", std::nullopt},
  };
  for (const auto& [text, cpus] : kCases) EXPECT_EQ(parse_cpu_max(text), cpus) << "'" << text << "'";
}

TEST(Cpus, CfsTexts) {
  EXPECT_EQ(parse_cfs_quota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("250000\n", "100000\n"), 3);
  EXPECT_EQ(parse_cfs_quota("50000", "50000"), 1);
  EXPECT_EQ(parse_cfs_quota("", ""), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("100000\n", ""), std::nullopt);
}

TEST(Cpus, FindsOurGroup) {
  using Found = std::vector<CgroupFolder>;
  const std::string v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
  const std::string v1 =
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
      "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n";
  EXPECT_EQ(find_cgroups("0::/user.slice/a.scope\n", v2), (Found{{"/sys/fs/cgroup", "/user.slice/a.scope", true}}));
  EXPECT_EQ(find_cgroups("0::/\n", v2), (Found{{"/sys/fs/cgroup", "", true}}));
  EXPECT_EQ(find_cgroups("5:cpuset:/wrong\n4:cpuacct,cpu:/job\n", v1),
            (Found{{"/sys/fs/cgroup/cpu,cpuacct", "/job", false}}));
  EXPECT_EQ(find_cgroups("5:cpuset:/wrong\n", v1), Found{});
  EXPECT_EQ(find_cgroups("4:cpu:/a:b\n0::/c\n", v1), (Found{{"/sys/fs/cgroup/cpu,cpuacct", "/a:b", false}}));
  EXPECT_EQ(find_cgroups("", v2), Found{});
  EXPECT_EQ(find_cgroups("0::/\n", ""), Found{});
  EXPECT_EQ(find_cgroups("nonsense\n:\n::\n", "nonsense - cgroup2\n1 2 3 4 - cgroup2 x\n\n - - -\n"), Found{});

  // A container shows its own group as the root of the mount, while /proc names it by the host's path.
  const std::string bound = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
  EXPECT_EQ(find_cgroups("4:cpu:/docker/abc/x\n", bound), (Found{{"/sys/fs/cgroup/cpu", "/x", false}}));
  EXPECT_EQ(find_cgroups("4:cpu:/docker/abc\n", bound), (Found{{"/sys/fs/cgroup/cpu", "", false}}));
  EXPECT_EQ(find_cgroups("4:cpu:/docker/abcd\n", bound), (Found{{"/sys/fs/cgroup/cpu", "", false}}));
}

TEST(Cpus, TheSmallestQuotaOfTheGroupAndItsParentsCounts) {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/slice/job/task\n");
  root.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/slice/job/task/cpu.max", "800000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 8);
  root.write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 8);
  root.write("sys/fs/cgroup/slice/cpu.max", "250000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 3);
  root.write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 1);
  root.write("sys/fs/cpu.max", "1 100000\n");  // above the mount: not ours
  root.write("sys/fs/cgroup/slice/other/cpu.max", "1 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 1);
}

TEST(Cpus, OldControlGroupsCountToo) {
  const TempFolder root;
  root.write("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/job\n0::/\n");
  root.write("proc/self/mountinfo",
             "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "350000\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 4);
}

TEST(Cpus, WithoutProcTheGroupThatIsSeenCounts) {
  const TempFolder root, old;
  root.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 2);
  old.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "350000\n");
  old.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(old.path()), 4);
}

TEST(Cpus, ASystemWithoutControlGroupsHasNoQuota) {
  const TempFolder root;
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
}

TEST(Cpus, AllowedCpusAreTheAffinityMask) {
  const std::vector<int> cpus = allowed_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
  std::vector<int> narrowed;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpus.back()), &set);
    ::sched_setaffinity(0, sizeof set, &set);
    narrowed = allowed_cpus();
    EXPECT_EQ(default_threads(), 1);
  }).join();
  EXPECT_EQ(narrowed, std::vector<int>{cpus.back()});
}

TEST(Cpus, DefaultThreadsUseWhatWeMayUse) {
  const auto cpus = static_cast<int>(allowed_cpus().size());
  EXPECT_EQ(default_threads(), std::min({cpus, cpu_quota().value_or(cpus), kMostThreads}));
}

}  // namespace
}  // namespace qkv

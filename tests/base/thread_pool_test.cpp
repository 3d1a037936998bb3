#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/expect_error.h"

namespace qkv {
namespace {

int cpus() {
  return static_cast<int>(allowed_cpus().size());
}

// Who did each task, and how often; written by the tasks without atomics, so TSan sees a task done twice.
struct Record {
  std::vector<int> thread, times;
};

Record record_run(ThreadPool& pool, int64_t tasks) {
  Record record{std::vector<int>(static_cast<size_t>(tasks), -1), std::vector<int>(static_cast<size_t>(tasks))};
  pool.run(tasks, [&](int64_t task, int thread) {
    record.thread[static_cast<size_t>(task)] = thread;
    ++record.times[static_cast<size_t>(task)];
  });
  return record;
}

TEST(ThreadPool, EveryTaskOnceOnItsThread) {
  for (const int threads : {1, 2, 3, 4, 7, 16}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t tasks : {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64, 100, 1000}) {
      const Record record = record_run(pool, tasks);
      for (int t = 0; t < threads; ++t) {
        for (int64_t task = t * tasks / threads; task < (t + 1) * tasks / threads; ++task) {
          ASSERT_EQ(record.times[static_cast<size_t>(task)], 1) << task << " of " << tasks;
          const int owner = tasks == 1 ? 0 : t;  // a single task runs on the caller
          ASSERT_EQ(record.thread[static_cast<size_t>(task)], owner) << task << " of " << tasks << ", " << threads;
        }
      }
    }
  }
}

TEST(ThreadPool, ATaskAloneThrowsToItsCaller) {
  ThreadPool pool(2);
  struct Stop {};
  EXPECT_THROW(pool.run(1, [](int64_t, int) { throw Stop{}; }), Stop);
  const Record record = record_run(pool, 4);  // the caller is itself again, and not thread 0 of a run
  EXPECT_EQ(record.thread, (std::vector<int>{0, 0, 1, 1}));
}

TEST(ThreadPool, AThreadNumberIsAlwaysTheSameThread) {
  ThreadPool pool(4);
  std::vector<std::thread::id> ids(4);
  pool.run(4, [&](int64_t, int thread) { ids[static_cast<size_t>(thread)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 4U);
  for (int i = 0; i < 100; ++i) {
    pool.run(11, [&](int64_t, int thread) { EXPECT_EQ(ids[static_cast<size_t>(thread)], std::this_thread::get_id()); });
  }
}

TEST(ThreadPool, TheSplitOfHugeTaskCountsDoesNotOverflow) {
  ThreadPool pool(3);
  const int64_t tasks = INT64_MAX;
  std::vector<int64_t> first(3, -1);
  struct Stop {};
  EXPECT_THROW(pool.run(tasks,
                        [&](int64_t task, int thread) {
                          first[static_cast<size_t>(thread)] = task;
                          throw Stop{};
                        }),
               Stop);
  __extension__ typedef __int128 Int128;
  for (int t = 0; t < 3; ++t) EXPECT_EQ(Int128{first[static_cast<size_t>(t)]}, Int128{tasks} * t / 3);
}

TEST(ThreadPool, ManyRunsInARow) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(16);
  for (int i = 0; i < 10'000; ++i) {
    pool.run(16, [&](int64_t task, int) { sums[static_cast<size_t>(task)] += i; });
  }
  for (const int64_t sum : sums) EXPECT_EQ(sum, 10'000LL * 9'999 / 2);
}

// One run reads on another thread what the run before has written.
TEST(ThreadPool, WritesAreVisibleAfterARun) {
  ThreadPool pool(4);
  std::vector<int> row(64);
  for (int i = 0; i < 500; ++i) {
    pool.run(64, [&](int64_t task, int) { ++row[static_cast<size_t>(task)]; });
    pool.run(64, [&](int64_t task, int) { ++row[static_cast<size_t>(63 - task)]; });
    for (const int value : row) ASSERT_EQ(value, 2 * (i + 1));
  }
}

TEST(ThreadPool, UnusedPoolsGoAway) {
  for (int i = 0; i < 50; ++i) {
    const ThreadPool pool(8);
  }
}

TEST(ThreadPool, FarMoreThreadsThanCpus) {
  ThreadPool pool(4 * std::max(cpus(), 2));
  for (int i = 0; i < 200; ++i) {
    const Record record = record_run(pool, 1000);
    ASSERT_EQ(std::count(record.times.begin(), record.times.end(), 1), 1000);
  }
}

TEST(ThreadPool, TheExceptionOfTheFirstTaskWins) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::atomic<int> done = 0;
    const auto error = error_of([&] {
      pool.run(100, [&](int64_t task, int) {
        QKV_CHECK(task % 40 != 39, "task ", task);  // 39 and 79, which four threads do at the same time
        ++done;
      });
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message(), "task 39");
    if (threads == 4) {
      EXPECT_EQ(done, 25 + 14 + 25 + 4);  // who throws stops, the others finish
    }
  }
}

TEST(ThreadPool, WorksOnAfterAnException) {
  ThreadPool pool(4);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(pool.run(64,
                          [&](int64_t task, int) {
                            if (task >= i % 64) throw std::runtime_error("no");
                          }),
                 std::runtime_error);
    const Record record = record_run(pool, 64);
    ASSERT_EQ(std::count(record.times.begin(), record.times.end(), 1), 64);
  }
}

TEST(ThreadPool, ANestedRunIsSerialOnItsThread) {
  ThreadPool pool(4);
  std::vector<std::vector<int64_t>> order(8);
  pool.run(8, [&](int64_t task, int thread) {
    const auto id = std::this_thread::get_id();
    pool.run(10, [&](int64_t inner, int inner_thread) {
      EXPECT_EQ(std::this_thread::get_id(), id);
      EXPECT_EQ(inner_thread, thread);
      order[static_cast<size_t>(task)].push_back(inner);
    });
  });
  for (const auto& inner : order) EXPECT_EQ(inner, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const auto error = error_of([&] {
    pool.run(4,
             [&](int64_t task, int) { pool.run(3, [&](int64_t inner, int) { QKV_CHECK(false, task, "/", inner); }); });
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message(), "0/0");
  // The caller is outside again: the next run is spread over the threads.
  EXPECT_EQ(record_run(pool, 4).thread, (std::vector<int>{0, 1, 2, 3}));
}

TEST(ThreadPool, ATaskMayUseAnotherPool) {
  ThreadPool outer(2), inner(3);
  std::atomic<int> done = 0;
  outer.run(4, [&](int64_t, int) {
    inner.run(30, [&](int64_t task, int thread) {
      EXPECT_EQ(task / 10, thread);
      ++done;
    });
  });
  EXPECT_EQ(done, 120);
}

TEST(ThreadPool, RunsFromTwoThreadsTakeTurns) {
  ThreadPool pool(3);
  std::atomic<int> callers_inside = 0;
  const auto caller = [&] {
    for (int i = 0; i < 300; ++i) {
      std::atomic<int> done = 0;
      pool.run(9, [&](int64_t task, int) {
        if (task == 0) {
          EXPECT_EQ(callers_inside.fetch_add(1), 0);
        }
        ++done;
        if (task == 0) callers_inside.fetch_sub(1);
      });
      ASSERT_EQ(done, 9);
    }
  };
  std::thread other(caller);
  caller();
  other.join();
}

TEST(ThreadPool, TooManyOrTooFewThreadsAreAnError) {
  expect_error([] { ThreadPool(-1); }, {"-1", "1024"});
  expect_error([] { ThreadPool(1025); }, {"1025", "1024"});
  EXPECT_EQ(ThreadPool(0).threads(), default_threads());
  const auto error = error_of([] { ThreadPool(2).run(-1, [](int64_t, int) {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Error::Kind::internal);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need the address space themselves
TEST(ThreadPool, ThreadsTheSystemRefusesAreAnError) {
  std::fflush(nullptr);  // the child must not print the parent's text again
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{1 << 30, 1 << 30};  // room for about a hundred stacks
    ::setrlimit(RLIMIT_AS, &limit);
    const auto error = error_of([] { ThreadPool{1000}; });
    ThreadPool small(4);
    const bool usable = record_run(small, 4).thread == std::vector<int>{0, 1, 2, 3};
    ::_exit(usable && error && error->message().find("cannot start 1000 threads, only ") == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}
#endif

#if defined(__x86_64__)
// Volatile, so that the sums are made here and now.
bool flushes_results() {
  volatile float smallest = 1.17549435e-38F, half = 0.5F;
  return smallest * half == 0.0F;
}
bool flushes_inputs() {
  volatile float denormal = 1e-40F, large = 1e30F;
  return denormal * large == 0.0F;
}

TEST(ThreadPool, DenormalsAreZeroOnEveryThreadAndOnlyInTasks) {
  ASSERT_FALSE(flushes_results() || flushes_inputs());
  ThreadPool pool(4);
  std::vector<int> flushed(4);
  pool.run(4, [&](int64_t task, int) { flushed[static_cast<size_t>(task)] = flushes_results() && flushes_inputs(); });
  EXPECT_EQ(flushed, std::vector<int>(4, 1));
  EXPECT_FALSE(flushes_results() || flushes_inputs());
  EXPECT_THROW(pool.run(1, [](int64_t, int) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_FALSE(flushes_results() || flushes_inputs());
  ThreadPool alone(1);
  alone.run(1, [&](int64_t, int) { EXPECT_TRUE(flushes_results() && flushes_inputs()); });
  EXPECT_FALSE(flushes_results() || flushes_inputs());
}
#endif

std::vector<std::vector<int>> cpus_of_threads(int threads) {
  ThreadPool pool(threads);
  std::vector<std::vector<int>> where(static_cast<size_t>(threads));
  pool.run(threads, [&](int64_t, int thread) { where[static_cast<size_t>(thread)] = allowed_cpus(); });
  return where;
}

TEST(ThreadPool, WorkersArePinnedOnlyWhenTheyFillTheMachine) {
  const std::vector<int> all = allowed_cpus();
  const int count = cpus();
  if (count < 2 || count > 64) GTEST_SKIP() << count << " CPUs";
  const bool quota_below = cpu_quota().value_or(count) < count;

  const auto full = cpus_of_threads(count);
  EXPECT_EQ(full[0], all);  // never the caller
  for (size_t t = 1; t < full.size(); ++t) EXPECT_EQ(full[t], quota_below ? all : std::vector<int>{all[t]});
  for (const auto& where : cpus_of_threads(count + 1)) EXPECT_EQ(where, all);
  if (count > 2) {
    for (const auto& where : cpus_of_threads(count - 1)) EXPECT_EQ(where, all);
  }
}

TEST(ThreadPool, ACallerOnAWorkersCpuIsMovedAwayAndNotKept) {
  const std::vector<int> all = allowed_cpus();
  if (cpus() < 2 || cpus() > 64 || cpu_quota().value_or(cpus()) < cpus()) GTEST_SKIP() << "workers are not pinned";
  ThreadPool pool(cpus());
  cpu_set_t everywhere, second;
  ASSERT_EQ(sched_getaffinity(0, sizeof everywhere, &everywhere), 0);
  CPU_ZERO(&second);
  CPU_SET(static_cast<size_t>(all[1]), &second);
  int moved = 0;
  for (int i = 0; i < 20; ++i) {  // the system may move it on at any time, but seldom does
    ASSERT_EQ(sched_setaffinity(0, sizeof second, &second), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof everywhere, &everywhere), 0);
    pool.run(cpus(), [&](int64_t, int thread) {
      if (thread == 0) moved += sched_getcpu() == all[0] ? 1 : 0;
    });
    EXPECT_EQ(allowed_cpus(), all);
  }
  EXPECT_GE(moved, 10);
}

}  // namespace
}  // namespace qkv

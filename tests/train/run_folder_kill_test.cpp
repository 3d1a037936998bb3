// kill -9 while a run is written: at random moments, and at every system call.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/file.h"
#include "base/temp_folder.h"
#include "train/run_folder_support.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using test::some_recipe, test::steps_in, test::Training;

// The folder after a kill: no partial files, the newest step restored bit for bit, each step logged once.
void expect_whole(const fs::path& path, int64_t& step) {
  RunFolder run = RunFolder::open(path);
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(kTemporaryPrefix)) << entry.path();
  }
  Training loaded("gpt2"), right("gpt2");
  testing::internal::CaptureStderr();
  const bool found = loaded.load(run);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // nothing is damaged
  step = found ? loaded.counters.step : 0;
  run.remove_after(step);
  if (!found) return;
  right.go_to(step);
  ASSERT_EQ(loaded.bits(), right.bits());
  for (const char* link : {"last", "best"}) {
    if (fs::is_symlink(path / link)) {
      EXPECT_NO_THROW(Checkpoint::open(path / link));
    }
  }
  const std::vector<int64_t> logged = steps_in(path / "log.jsonl");
  ASSERT_EQ(logged.size(), static_cast<size_t>(step));
  for (size_t s = 0; s < logged.size(); ++s) EXPECT_EQ(logged[s], static_cast<int64_t>(s) + 1);
}

// Resumes the run and saves step after step; reports each step that is safely on disk.
[[noreturn]] void train_until_killed(const fs::path& path, int tell) {
  try {
    Training training("gpt2");
    RunFolder run = RunFolder::open(path);
    training.load(run);
    run.remove_after(training.counters.step);
    for (int64_t step = training.counters.step + 1;; ++step) {
      training.go_to(step);
      run.log({{"step", step}});
      run.scalars(step, {{"loss", 1.0}});
      training.save(run, step % 3 == 0);
      run.keep_last(2);
      if (step % 2 == 0) run.wait();
      const int64_t safe = step % 2 == 0 ? step : step - 1;
      if (::write(tell, &safe, sizeof(safe)) != sizeof(safe)) ::_exit(2);
    }
  } catch (const std::exception& e) {
    std::fputs(e.what(), stderr);
  }
  ::_exit(1);
}

void kill_often(int times) {
  const TempFolder temp;
  const fs::path path = temp.path() / "run";
  { const RunFolder run = RunFolder::create(path, some_recipe()); }
  uint32_t random = 12345;
  int64_t last = 0;
  for (int i = 0; i < times; ++i) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) train_until_killed(path, pipe[1]);
    ::close(pipe[1]);
    int64_t told = 0, safe = last;
    while (i % 2 == 0 && told <= last) {  // wait for progress; otherwise it may be killed while it opens the run
      ASSERT_EQ(::read(pipe[0], &told, sizeof(told)), static_cast<ssize_t>(sizeof(told)));
    }
    random = random * 1664525 + 1013904223;
    ::usleep((random >> 8) % 30'000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    do safe = std::max(safe, told);
    while (::read(pipe[0], &told, sizeof(told)) == static_cast<ssize_t>(sizeof(told)));
    ::close(pipe[0]);

    int64_t found = 0;
    ASSERT_NO_FATAL_FAILURE(expect_whole(path, found));
    EXPECT_GE(found, safe);
    last = found;
  }
  EXPECT_GT(last, 0);
}

TEST(RunFolder, GoesOnAfterEveryKill) {
  kill_often(10);
}

TEST(RunFolderLong, GoesOnAfterEveryOfAThousandKills) {
  kill_often(1000);
}

// --- at every system call that changes a file ------------------------------------------------------------------------

bool changes_files(uint64_t call) {
  switch (call) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_openat:
    case SYS_ftruncate:
    case SYS_fsync:
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_renameat2:
#if defined(__x86_64__)
    case SYS_mkdir:
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_symlink:
    case SYS_rename:
    case SYS_truncate:
#endif
      return true;
    default:
      return false;
  }
}

// One more step of the run, saved as the best, with the oldest checkpoint removed.
[[noreturn]] void one_step_traced(const fs::path& path) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(3);
  ::raise(SIGSTOP);
  try {
    Training training("gpt2");
    RunFolder run = RunFolder::open(path);
    training.load(run);
    const int64_t step = training.counters.step + 1;
    training.go_to(step);
    run.log({{"step", step}});
    training.save(run, true);
    run.keep_last(2);
    run.wait();
    ::_exit(0);
  } catch (const std::exception& e) {
    std::fputs(e.what(), stderr);
  }
  ::_exit(1);
}

// Kills the child as it enters the n-th of those calls; -1 if it finished before. Its threads are traced too.
int killed_at(pid_t child, int n) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return status;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  pid_t stopped = child;
  int signal = 0;
  while (true) {
    ::ptrace(PTRACE_SYSCALL, stopped, nullptr, signal);
    stopped = ::waitpid(-1, &status, __WALL);
    if (stopped < 0) return 0;
    if (stopped == child && !WIFSTOPPED(status)) return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? -1 : status;
    signal = 0;
    if (!WIFSTOPPED(status)) continue;  // a thread's end
    const int why = WSTOPSIG(status);
    if (why != (SIGTRAP | 0x80)) {
      signal = why == SIGTRAP || why == SIGSTOP ? 0 : why;
      continue;
    }
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, stopped, sizeof(info), &info);
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !changes_files(info.entry.nr) || --n > 0) continue;
    ::kill(child, SIGKILL);  // its threads end first, and each is reported
    do stopped = ::waitpid(-1, &status, __WALL);
    while (stopped > 0 && (stopped != child || WIFSTOPPED(status)));
    return status;
  }
}

void kill_at_every_call(int stride) {
  const TempFolder temp;
  const fs::path path = temp.path() / "run";
  { const RunFolder run = RunFolder::create(path, some_recipe()); }
  int64_t last = 0, steps = 0;
  for (int n = 1;; n += stride) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) one_step_traced(path);
    const int status = killed_at(child, n);
    if (n == 1 && WIFEXITED(status) && WEXITSTATUS(status) == 3) GTEST_SKIP() << "processes cannot be traced here";
    int64_t found = 0;
    ASSERT_NO_FATAL_FAILURE(expect_whole(path, found));
    ASSERT_TRUE(found == last || found == last + 1) << found << " after " << last;
    RunFolder::open(path).keep_last(2);  // otherwise leftovers of kills grow faster than n
    steps += found - last;
    last = found;
    if (status == -1) {
      EXPECT_GT(n, 20);
      break;
    }
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
  EXPECT_GT(steps, 1);  // the last calls come after the checkpoint is complete
}

TEST(RunFolder, GoesOnWhereverItWasKilled) {
  kill_at_every_call(7);
}

TEST(RunFolderLong, GoesOnWhereverItWasKilled) {
  kill_at_every_call(1);
}

}  // namespace
}  // namespace qkv

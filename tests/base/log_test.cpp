#include "base/log.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/pseudo_terminal.h"
#include "base/scoped_variable.h"

namespace qkv {
namespace {

template <class Call>
std::string stderr_of(const Call& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, EachLevelHasItsPrefix) {
  EXPECT_EQ(stderr_of([] { log_line(Log::info, "loaded 模型"); }), "qkv: loaded 模型\n");
  EXPECT_EQ(stderr_of([] { log_line(Log::warn, "slow"); }), "qkv: warning: slow\n");
  EXPECT_EQ(stderr_of([] { log_line(Log::error, "broken\n  hint: mend"); }), "qkv: error: broken\n  hint: mend\n");
}

TEST(Log, ALineEndsOnce) {
  EXPECT_EQ(stderr_of([] { log_line(Log::info, "x\n"); }), "qkv: x\n");
  EXPECT_EQ(stderr_of([] { log_line(Log::info, ""); }), "qkv: \n");
}

TEST(Log, QuotedTextCannotSteerOrFillTheScreen) {
  EXPECT_EQ(stderr_of([] { log_line(Log::warn, "no '\x1b[2J'"); }), "qkv: warning: no '\\u001b[2J'\n");
  EXPECT_LT(stderr_of([] { log_line(Log::warn, std::string(4 << 20, 'x')); }).size(), 2100U);
}

TEST(Log, LinesOfManyThreadsStayWhole) {
  constexpr int kThreads = 4, kLines = 200;
  const std::string out = stderr_of([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kLines; ++i) log_line(Log::warn, std::string(300, static_cast<char>('a' + t)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::istringstream lines(out);
  int whole = 0;
  for (std::string line; std::getline(lines, line); ++whole) {
    ASSERT_EQ(line.size(), std::string("qkv: warning: ").size() + 300) << line;
    EXPECT_EQ(std::count(line.end() - 300, line.end(), line.back()), 300) << line;
  }
  EXPECT_EQ(whole, kThreads * kLines);
}

TEST(Log, WarnOnceWarnsOncePerKey) {
  EXPECT_EQ(stderr_of([] {
              warn_once("log_test one", "first");
              warn_once("log_test one", "second");
              warn_once("log_test two", "third");
              warn_once("log_test one", "fourth");
            }),
            "qkv: warning: first\nqkv: warning: third\n");
}

// What log_line writes while stderr is a terminal.
std::string on_terminal(Log level, const char* no_color, const char* term = "xterm") {
  const PseudoTerminal terminal(80);
  if (!terminal.works()) return "no terminal";
  const ScopedVariable colour("NO_COLOR", no_color), named("TERM", term);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(terminal.fd(), STDERR_FILENO);
  log_line(level, "text");
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  return terminal.read();
}

TEST(Log, ColoursOnATerminalUnlessToldNotTo) {
  if (on_terminal(Log::info, nullptr) == "no terminal") GTEST_SKIP() << "no pseudo terminals here";
  EXPECT_EQ(on_terminal(Log::info, nullptr), "qkv: text\n");
  EXPECT_EQ(on_terminal(Log::warn, nullptr), "qkv: \x1b[33mwarning: \x1b[0mtext\n");
  EXPECT_EQ(on_terminal(Log::error, nullptr), "qkv: \x1b[31merror: \x1b[0mtext\n");
  EXPECT_EQ(on_terminal(Log::error, ""), "qkv: \x1b[31merror: \x1b[0mtext\n");
  EXPECT_EQ(on_terminal(Log::error, "1"), "qkv: error: text\n");
  EXPECT_EQ(on_terminal(Log::error, nullptr, "dumb"), "qkv: error: text\n");
  EXPECT_EQ(on_terminal(Log::error, nullptr, nullptr), "qkv: error: text\n");
}

// In a process of its own: from then on it drops.
TEST(LogDeathTest, ALineThatNobodyReadsIsDroppedAndCounted) {
  EXPECT_EXIT(
      {
        int pipe[2];
        if (::pipe(pipe) != 0 || ::dup2(pipe[1], STDERR_FILENO) < 0) ::_exit(1);
        drop_unread_lines();
        const std::string line(1000, 'x');
        for (int i = 0; i < 200; ++i) log_line(Log::info, line);  // 200 kB into a pipe that holds 64
        std::string read(1 << 20, '\0');
        read.resize(static_cast<size_t>(::read(pipe[0], read.data(), read.size())));
        const auto kept = std::count(read.begin(), read.end(), '\n');
        log_line(Log::warn, "read again");
        std::string next(4096, '\0');
        next.resize(static_cast<size_t>(::read(pipe[0], next.data(), next.size())));
        const std::string wanted = "qkv: warning: " + std::to_string(200 - kept) +
                                   " lines before this one were dropped, nobody read them\nqkv: warning: read again\n";
        ::_exit(kept > 0 && kept < 200 && next == wanted ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace qkv

#include "base/progress.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "base/display_width.h"
#include "base/pseudo_terminal.h"
#include "base/scoped_variable.h"

namespace qkv {
namespace {

// A stream that is no terminal, and what was written to it.
class Memory {
 public:
  Memory() : file_(std::tmpfile()) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { std::fclose(file_); }
  std::FILE* file() const { return file_; }
  std::string text() const {
    std::rewind(file_);
    std::string all;
    for (int c = 0; (c = std::fgetc(file_)) != EOF;) all.push_back(static_cast<char>(c));
    return all;
  }

 private:
  std::FILE* file_;
};

auto lines_in(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(Progress, ShortWorkLeavesNoTrace) {
  const Memory out;
  double now = 100;
  Progress progress("reading", 10, out.file(), {.seconds = [&] { return now; }});
  for (int i = 1; i <= 10; ++i) {
    now = 100 + 0.1 * i;
    progress.update(i);
  }
  progress.finish();
  EXPECT_EQ(out.text(), "");
}

TEST(Progress, PlainLinesComeEveryTenSeconds) {
  const Memory out;
  double now = 100;
  Progress progress("training", 1000, out.file(), {.seconds = [&] { return now; }});
  for (int i = 1; i <= 500; ++i) {
    now = 100 + 0.125 * i;
    progress.update(i, "loss 2.5");
  }
  progress.finish();
  EXPECT_EQ(out.text(),
            "training: 80 of 1000, 8%, 8.0/s, 1:55 left  loss 2.5\n"
            "training: 160 of 1000, 16%, 8.0/s, 1:45 left  loss 2.5\n"
            "training: 240 of 1000, 24%, 8.0/s, 1:35 left  loss 2.5\n"
            "training: 320 of 1000, 32%, 8.0/s, 1:25 left  loss 2.5\n"
            "training: 400 of 1000, 40%, 8.0/s, 1:15 left  loss 2.5\n"
            "training: 480 of 1000, 48%, 8.0/s, 1:05 left  loss 2.5\n"
            "training: 500 in 1:03, 8.0/s\n");
}

// A run that goes on at step 400 of 1000: the rate and the time left are of the steps it does now.
TEST(Progress, WhatWasDoneBeforeIsNotInTheRate) {
  const Memory out;
  double now = 100;
  Progress progress("training", 1000, out.file(), {.seconds = [&] { return now; }, .first = 400});
  for (int i = 401; i <= 500; ++i) {
    now = 100 + 0.125 * (i - 400);
    progress.update(i);
  }
  progress.finish();
  EXPECT_EQ(out.text(),
            "training: 480 of 1000, 48%, 8.0/s, 1:05 left\n"
            "training: 100 in 0:13, 8.0/s\n");
}

TEST(Progress, AnUnknownTotalHasNoPercentAndNoTimeLeft) {
  const Memory out;
  double now = 0;
  Progress progress("下载", 0, out.file(), {.seconds = [&] { return now; }});
  now = 10;
  progress.update(25'000'000);
  EXPECT_EQ(out.text(), "下载: 25.0M, 2.5M/s\n");
}

TEST(Progress, SlowWorkSaysSecondsEachAndHoursLeft) {
  const Memory out;
  double now = 0;
  Progress progress("steps", 1001, out.file(), {.seconds = [&] { return now; }});
  now = 12.5;
  progress.update(1);
  EXPECT_EQ(out.text(), "steps: 1 of 1001, 0%, 12.5 s each, 3:28:20 left\n");
}

TEST(Progress, ChineseLinesHaveNoEnglishWords) {
  const Memory out;
  double now = 0;
  Progress progress("读文本", 300, out.file(), {.seconds = [&] { return now; }, .chinese = true});
  now = 20;
  progress.update(100);
  progress.finish();
  EXPECT_EQ(out.text(), "读文本：100 / 300，33%，每秒 5.0 个，还要 0:40\n读文本：100 个，用时 0:20，每秒 5.0 个\n");
}

TEST(Progress, SilenceHidesLinesWhileItLives) {
  const Memory out;
  double now = 0;
  Progress progress("reading", 0, out.file(), {.seconds = [&] { return now; }});
  {
    const ProgressSilence silence;
    now = 20;
    progress.update(1);
    EXPECT_EQ(out.text(), "");
  }
  now = 40;
  progress.update(2);
  EXPECT_NE(out.text(), "");
}

TEST(Progress, NothingDoneYetHasNoRate) {
  const Memory out;
  double now = 0;
  Progress progress("steps", 7, out.file(), {.seconds = [&] { return now; }});
  now = 20;
  progress.update(0, "waiting");
  EXPECT_EQ(out.text(), "steps: 0 of 7, 0%  waiting\n");
}

TEST(Progress, ANoteCannotBreakTheLine) {
  const Memory out;
  double now = 0;
  Progress progress("say", 0, out.file(), {.seconds = [&] { return now; }});
  now = 10;
  progress.update(10, "a\nb\x1b[2J\r");
  EXPECT_EQ(out.text(), "say: 10, 1.0/s  a\\u000ab\\u001b[2J\\u000d\n");
}

TEST(Progress, FinishEndsItOnce) {
  const Memory out;
  double now = 0;
  Progress progress("work", 3, out.file(), {.seconds = [&] { return now; }});
  now = 2;
  progress.update(3);
  progress.finish();
  progress.finish();
  now = 60;
  progress.update(4);
  EXPECT_EQ(out.text(), "work: 3 in 0:02, 1.5/s\n");
}

class Terminal {
 public:
  explicit Terminal(int columns)
      : pseudo_(columns), file_(pseudo_.works() ? ::fdopen(::dup(pseudo_.fd()), "w") : nullptr) {}
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (file_ != nullptr) std::fclose(file_);
  }
  bool works() const { return file_ != nullptr; }
  std::FILE* file() const { return file_; }
  std::string read() const { return pseudo_.read(); }

 private:
  ScopedVariable term_{"TERM", "xterm"};
  PseudoTerminal pseudo_;
  std::FILE* file_;
};

TEST(Progress, ADumbTerminalGetsPlainLines) {
  const Terminal terminal(80);
  if (!terminal.works()) GTEST_SKIP() << "no pseudo terminals here";
  const ScopedVariable dumb("TERM", "dumb");
  double now = 0;
  Progress progress("reading", 0, terminal.file(), {.seconds = [&] { return now; }});
  now = 10;
  progress.update(20);
  EXPECT_EQ(terminal.read(), "reading: 20, 2.0/s\n");
}

TEST(Progress, OnATerminalTheLineIsRewrittenTenTimesASecondAtMost) {
  const Terminal terminal(80);
  if (!terminal.works()) GTEST_SKIP() << "no pseudo terminals here";
  double now = 0;
  Progress progress("reading", 4000, terminal.file(), {.seconds = [&] { return now; }});
  for (int i = 1; i <= 1000; ++i) {
    now = 0.001 * i;
    progress.update(i);
  }
  EXPECT_EQ(terminal.read(), "");  // within the first second
  int rewrites = 0;
  for (int i = 1001; i <= 3000; ++i) {
    now = 0.001 * i;
    progress.update(i);
    const std::string text = terminal.read();
    EXPECT_EQ(lines_in(text), 0);
    if (rewrites == 0 && !text.empty()) {
      EXPECT_EQ(text, "\rreading: 1001 of 4000, 25%, 1000/s, 0:03 left\x1b[K");
    }
    rewrites += static_cast<int>(std::count(text.begin(), text.end(), '\r'));
  }
  EXPECT_GE(rewrites, 18);
  EXPECT_LE(rewrites, 20);
  progress.finish();
  EXPECT_EQ(terminal.read(), "\rreading: 3000 in 0:03, 1000/s\x1b[K\n");
}

TEST(Progress, ALineFitsTheTerminalInChineseToo) {
  const Terminal terminal(30);
  if (!terminal.works()) GTEST_SKIP() << "no pseudo terminals here";
  double now = 0;
  Progress progress("训练", 0, terminal.file(), {.seconds = [&] { return now; }});
  now = 2;
  progress.update(4, "一二三四五六七八九十");
  const std::string text = terminal.read();
  EXPECT_EQ(text, "\r训练: 4, 2.0/s  一二三四五六\x1b[K");
  EXPECT_EQ(display_width(text.substr(1, text.size() - 4)), 28);  // 29 are free, the next character takes two
}

TEST(Progress, AnExceptionLeavesTheNextLineFree) {
  const Terminal terminal(80);
  if (!terminal.works()) GTEST_SKIP() << "no pseudo terminals here";
  double now = 0;
  try {
    Progress progress("work", 0, terminal.file(), {.seconds = [&] { return now; }});
    now = 2;
    progress.update(4);
    throw std::runtime_error("stop");
  } catch (const std::runtime_error&) {
  }
  std::fflush(terminal.file());
  EXPECT_EQ(terminal.read(), "\rwork: 4, 2.0/s\x1b[K\n");
}

TEST(Progress, HasAClockOfItsOwn) {
  const Memory out;
  Progress progress("work", 1, out.file());
  progress.update(1);
  progress.finish();
  EXPECT_EQ(out.text(), "");
}

}  // namespace
}  // namespace qkv

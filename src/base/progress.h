// A progress line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace qkv {

struct ProgressOptions {
  std::function<double()> seconds;  // the clock; empty means the steady one
  bool chinese = false;             // the words between the numbers
  int64_t first = 0;                // done before this line began: not counted in the rate
};

// No line is shown while one of these lives.
class ProgressSilence {
 public:
  ProgressSilence();
  ~ProgressSilence();
  ProgressSilence(const ProgressSilence&) = delete;
  ProgressSilence& operator=(const ProgressSilence&) = delete;
};

// On a terminal that can (base/terminal.h) the line is rewritten in place, at most 10 times a second; elsewhere a plain line at most every 10
// seconds. Work that ends within a second prints nothing.
class Progress {
 public:
  // A total of 0 means unknown.
  Progress(std::string what, int64_t total, std::FILE* out = stderr, ProgressOptions options = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, std::string_view note = {});
  void finish();

 private:
  double elapsed() const { return options_.seconds() - start_; }
  std::string status(double time, std::string_view note) const;
  void show(std::string line, const char* end);

  std::string what_;
  int64_t total_, done_ = 0;
  std::FILE* out_;
  ProgressOptions options_;
  bool terminal_;
  double start_, last_shown_;
  bool open_ = false;  // the terminal shows an unfinished line
  bool finished_ = false;
};

}  // namespace qkv

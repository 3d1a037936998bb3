#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "base/display_width.h"
#include "base/printable.h"
#include "base/terminal.h"

namespace qkv {
namespace {

constexpr double kQuiet = 1.0;  // seconds
constexpr double kTerminalEvery = 0.1, kPlainEvery = 10.0;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int columns_of(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string short_number(double value) {
  if (value >= 1e9) return fmt::format("{:.2f}G", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.{}f}", value, value < 100 ? 1 : 0);
}

std::string count_text(int64_t count) {
  return count < 10'000 ? fmt::format("{}", count) : short_number(static_cast<double>(count));
}

std::string rate_text(int64_t done, double time, bool chinese) {
  const double rate = static_cast<double>(done) / time;
  if (chinese) return rate < 1.0 ? fmt::format("每个 {:.1f} 秒", 1.0 / rate) : "每秒 " + short_number(rate) + " 个";
  return rate < 1.0 ? fmt::format("{:.1f} s each", 1.0 / rate) : short_number(rate) + "/s";
}

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::min(seconds, 1e9) + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::atomic<int> silences = 0;

}  // namespace

ProgressSilence::ProgressSilence() {
  ++silences;
}
ProgressSilence::~ProgressSilence() {
  --silences;
}

Progress::Progress(std::string what, int64_t total, std::FILE* out, ProgressOptions options)
    : what_(std::move(what)), total_(total), out_(out), options_(std::move(options)) {
  if (!options_.seconds) options_.seconds = steady_seconds;
  terminal_ = may_move_cursor(::fileno(out_));
  start_ = last_shown_ = options_.seconds();
}

Progress::~Progress() {
  if (open_) std::fputs("\n", out_);  // after an exception: end the line
}

void Progress::update(int64_t done, std::string_view note) {
  if (finished_ || silences > 0) return;
  done_ = done;
  const double now = options_.seconds();
  if (now - start_ <= kQuiet || now - last_shown_ < (terminal_ ? kTerminalEvery : kPlainEvery)) return;
  last_shown_ = now;
  show(status(now - start_, note), terminal_ ? "" : "\n");
}

void Progress::finish() {
  if (std::exchange(finished_, true) || silences > 0) return;
  const double time = elapsed();
  if (time <= kQuiet) return;
  std::string line = fmt::format(fmt::runtime(options_.chinese ? "{}：{} 个，用时 {}" : "{}: {} in {}"), what_,
                                 count_text(done_ - options_.first), time_text(time));
  if (done_ > options_.first) {
    line += (options_.chinese ? "，" : ", ") + rate_text(done_ - options_.first, time, options_.chinese);
  }
  show(std::move(line), "\n");
}

std::string Progress::status(double time, std::string_view note) const {
  const bool chinese = options_.chinese;
  const char* comma = chinese ? "，" : ", ";
  std::string line = what_ + (chinese ? "：" : ": ") + count_text(done_);
  if (total_ > 0) {
    const double share = std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    line += fmt::format("{}{}{}{:.0f}%", chinese ? " / " : " of ", count_text(total_), comma, 100.0 * share);
  }
  if (const int64_t here = done_ - options_.first; here > 0) {
    line += comma + rate_text(here, time, chinese);
    const double left = static_cast<double>(std::max<int64_t>(total_ - done_, 0));
    if (total_ > 0) {
      const std::string rest = time_text(left * time / static_cast<double>(here));
      line += chinese ? "，还要 " + rest : ", " + rest + " left";
    }
  }
  if (!note.empty()) line.append("  ").append(note);
  return line;
}

void Progress::show(std::string line, const char* end) {
  line = escaped(line, LineBreaks::escaped);  // a note may quote any text
  if (terminal_) {
    // A full line would wrap; the escape sequence erases the rest of a longer line before.
    line = fmt::format("\r{}\x1b[K{}", fit_width(line, columns_of(out_) - 1), end);
  } else {
    line += end;
  }
  std::fputs(line.c_str(), out_);
  std::fflush(out_);
  open_ = terminal_ && *end == '\0';
}

}  // namespace qkv
